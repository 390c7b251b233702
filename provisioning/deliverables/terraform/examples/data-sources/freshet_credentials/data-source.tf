data "freshet_credentials" "all" {
  cluster_id = data.freshet_cluster.orders.id
}
