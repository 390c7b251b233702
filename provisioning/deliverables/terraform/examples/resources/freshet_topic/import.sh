# cluster/name; the cluster by its id or its name.
terraform import freshet_topic.payments orders/payments
