resource "freshet_cluster" "orders" {
  name           = "orders"
  idle_timeout_s = 900
  labels         = { team = "checkout" }
}

output "bootstrap_servers" {
  value = freshet_cluster.orders.bootstrap_servers
}
