resource "freshet_acl" "checkout_writes" {
  cluster_id    = freshet_cluster.orders.id
  principal     = freshet_credential.checkout.principal
  resource_type = "TOPIC"
  resource_name = freshet_topic.payments.name
  operation     = "WRITE"
}
