data "freshet_alert" "payments" {
  cluster_id = data.freshet_cluster.orders.id
  name       = "Payments are late"
}
