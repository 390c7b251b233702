# cluster/name or cluster/id; the cluster by its id or its name.
terraform import freshet_credential.checkout orders/checkout
