ephemeral "freshet_credential" "check" {
  cluster_id = freshet_cluster.orders.id
  role       = "consumer"
}
