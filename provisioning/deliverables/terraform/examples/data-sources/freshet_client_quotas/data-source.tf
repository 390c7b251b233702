data "freshet_client_quotas" "all" {
  cluster_id = data.freshet_cluster.orders.id
}
