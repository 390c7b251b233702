# By its id or its name.
terraform import freshet_project.checkout checkout
