package api

import "context"

// Organization is the organization that the API key belongs to.
type Organization struct {
	ID                string   `json:"id"`
	Name              string   `json:"name"`
	AllowedAddresses  []string `json:"allowed_addresses"`
	TwoFactorRequired bool     `json:"two_factor_required"`
	AccountStatus     string   `json:"standing"`
	Verified          bool     `json:"verified"`
	CreatedAt         string   `json:"created_at"`
}

// OrganizationChange is the change of the organization. A field that is nil stays as it is.
type OrganizationChange struct {
	Name              *string   `json:"name,omitempty"`
	AllowedAddresses  *[]string `json:"allowed_addresses,omitempty"`
	TwoFactorRequired *bool     `json:"two_factor_required,omitempty"`
}

// Member is a person who belongs to the organization.
type Member struct {
	ID        string `json:"id"`
	UserID    string `json:"user_id"`
	Email     string `json:"email"`
	Name      string `json:"name"`
	Role      string `json:"role"`
	TwoFactor bool   `json:"two_factor"`
	CreatedAt string `json:"created_at"`
}

// InvitedRole is a role in a project that somebody gets who accepts an invitation.
type InvitedRole struct {
	ProjectID string `json:"project_id"`
	Role      string `json:"role"`
}

// NewInvitation is an invitation to be sent.
type NewInvitation struct {
	Email        string        `json:"email"`
	Role         string        `json:"role"`
	ProjectRoles []InvitedRole `json:"project_roles,omitempty"`
}

// Invitation is a mail by which somebody may join. State is "pending" as long as it can be
// accepted.
type Invitation struct {
	ID        string `json:"id"`
	State     string `json:"state"`
	CreatedAt string `json:"created_at"`
	NewInvitation
}

// RoleChange is the change of a member's role.
type RoleChange struct {
	Role string `json:"role"`
}

// Organization reads the organization of the API key.
func (c *Client) Organization(ctx context.Context) (Organization, error) {
	var organization Organization
	err := c.get(ctx, "/organizations/current", nil, &organization)
	return organization, err
}

// UpdateOrganization changes the organization. The service refuses a change that locks the caller
// out.
func (c *Client) UpdateOrganization(
	ctx context.Context, change OrganizationChange,
) (Organization, error) {
	var organization Organization
	err := c.patch(ctx, "/organizations/current", change, &organization)
	return organization, err
}

// Members reads all members.
func (c *Client) Members(ctx context.Context) ([]Member, error) {
	return list[Member](ctx, c, "/members", nil, pageOfRows)
}

// UpdateMember gives a member another role.
func (c *Client) UpdateMember(ctx context.Context, id string, change RoleChange) (Member, error) {
	var member Member
	err := c.patch(ctx, at("members", id), change, &member)
	return member, err
}

// DeleteMember removes a member from the organization.
func (c *Client) DeleteMember(ctx context.Context, id string) error {
	return c.remove(ctx, at("members", id), nil, nil)
}

// Invitations reads all invitations, also those that can no longer be accepted.
func (c *Client) Invitations(ctx context.Context) ([]Invitation, error) {
	return list[Invitation](ctx, c, "/invitations", nil, pageOfRows)
}

// CreateInvitation invites somebody by mail.
func (c *Client) CreateInvitation(
	ctx context.Context, invitation NewInvitation,
) (Invitation, error) {
	var created Invitation
	_, err := c.post(ctx, "/invitations", invitation, &created)
	return created, err
}

// RevokeInvitation ends an invitation, whose link works no longer. For one that was accepted
// meanwhile the service refuses with the code "invitation_closed".
func (c *Client) RevokeInvitation(ctx context.Context, id string) error {
	return c.remove(ctx, at("invitations", id), nil, nil)
}
