data "freshet_acls" "everybody" {
  cluster_id = data.freshet_cluster.orders.id
  principal  = "User:*"
}
