data "freshet_cluster" "orders" {
  name = "orders"
}
