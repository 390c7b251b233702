resource "freshet_topic" "payments" {
  cluster_id = freshet_cluster.orders.id
  name       = "payments"
  partitions = 6
  configs = {
    "retention.ms"   = "604800000"
    "cleanup.policy" = "delete"
  }
}
