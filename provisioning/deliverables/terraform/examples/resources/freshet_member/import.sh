# By the address, of a member or of who is invited.
terraform import 'freshet_member.people["anna@example.org"]' anna@example.org
