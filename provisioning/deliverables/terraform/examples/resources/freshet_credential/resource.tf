variable "checkout_password" {
  type      = string
  ephemeral = true
}

resource "freshet_credential" "checkout" {
  cluster_id          = freshet_cluster.orders.id
  name                = "checkout"
  role                = "none"
  password_wo         = var.checkout_password
  password_wo_version = 1
}
