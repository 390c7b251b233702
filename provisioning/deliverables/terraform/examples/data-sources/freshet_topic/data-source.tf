data "freshet_topic" "payments" {
  cluster_id = data.freshet_cluster.orders.id
  name       = "payments"
}

output "retention" {
  value = data.freshet_topic.payments.effective_configs["retention.ms"]
}
