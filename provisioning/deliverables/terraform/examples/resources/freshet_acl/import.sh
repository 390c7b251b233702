# cluster/principal/resource type/pattern type/resource name/operation/permission/host, each
# percent-encoded; the cluster by its id or its name.
terraform import freshet_acl.checkout_writes \
  'orders/User:cred_5xw4mzn6yt2ba3k2jq7v/TOPIC/LITERAL/payments/WRITE/ALLOW/*'
