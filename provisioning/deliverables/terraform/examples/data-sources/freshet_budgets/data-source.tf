data "freshet_budgets" "all" {}
