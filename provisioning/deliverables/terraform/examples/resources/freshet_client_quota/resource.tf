resource "freshet_client_quota" "checkout" {
  cluster_id               = freshet_cluster.orders.id
  user                     = freshet_credential.checkout.username
  produce_bytes_per_second = 10485760
  fetch_bytes_per_second   = 20971520
  connections              = 50

  # A rotation makes another user: that one has its quotas before the other loses them.
  lifecycle { create_before_destroy = true }
}

# Every user that has no quotas of its own.
resource "freshet_client_quota" "everybody" {
  cluster_id               = freshet_cluster.orders.id
  user                     = ""
  produce_bytes_per_second = 1048576
}
