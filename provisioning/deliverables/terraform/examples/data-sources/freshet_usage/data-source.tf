data "freshet_usage" "by_topic" {
  cluster_id  = data.freshet_cluster.orders.id
  granularity = "day"
  group_by    = "topic"
}
