# cluster/name, the cluster by its id or its name; or the alert's id.
terraform import freshet_alert.payments 'orders/Payments are late'
