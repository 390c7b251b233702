# By its id or its name.
terraform import freshet_cluster.orders orders
