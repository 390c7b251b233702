# cluster/entity, the cluster by its id or its name: user=name, client_id=name,
# user=name/client_id=name or ip=address, each percent-encoded; or cluster/id of the quota.
terraform import freshet_client_quota.checkout orders/user=cred_5xw4mzn6yt2ba3k2jq7v
terraform import freshet_client_quota.everybody orders/user=
