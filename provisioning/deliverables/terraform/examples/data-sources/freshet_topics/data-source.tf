data "freshet_topics" "checkout" {
  cluster_id    = data.freshet_cluster.orders.id
  name_contains = "checkout."
}
