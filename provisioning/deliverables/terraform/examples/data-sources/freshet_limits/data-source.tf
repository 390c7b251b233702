data "freshet_limits" "orders" {
  cluster_id = data.freshet_cluster.orders.id
}

output "topics_left" {
  value = [
    for each in data.freshet_limits.orders.limits : each.limit - each.used
    if each.name == "topics"
  ]
}
