resource "freshet_alert" "payments" {
  cluster_id = freshet_cluster.orders.id
  name       = "Payments are late"
  kind       = "group_lag_seconds"
  group      = "payments"
  threshold  = 60
  for_s      = 120
}

# The worst of all groups, mails to one member.
resource "freshet_alert" "behind" {
  cluster_id = freshet_cluster.orders.id
  name       = "A group is far behind"
  kind       = "group_lag"
  threshold  = 1000000
  emails     = ["anna@example.org"]
}
