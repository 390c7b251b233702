# By its id or its name.
terraform import freshet_budget.team Team
