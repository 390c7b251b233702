resource "freshet_cluster" "orders" {
  name           = "orders"
  idle_timeout_s = 900
  labels         = { team = "checkout" }
}

output "bootstrap_servers" {
  value = freshet_cluster.orders.bootstrap_servers
}

# Its first client of the day does not wait; at night and at weekends it sleeps while nobody is
# connected.
resource "freshet_cluster" "reports" {
  name = "reports"
  schedules = [{
    days      = ["mon", "tue", "wed", "thu", "fri"]
    start     = "07:00"
    end       = "19:00"
    time_zone = "Europe/Zurich"
  }]
}

# It goes on while a broker is started anew: the two others have taken its partitions over.
resource "freshet_cluster" "payments" {
  name  = "payments"
  scale = { max = 3 }
}
