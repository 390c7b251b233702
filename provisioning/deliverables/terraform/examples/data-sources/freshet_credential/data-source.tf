data "freshet_credential" "checkout" {
  cluster_id = data.freshet_cluster.orders.id
  name       = "checkout"
}
