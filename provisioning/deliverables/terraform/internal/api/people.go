package api

import "context"

// Organization is the one that the key is of.
type Organization struct {
	ID                string   `json:"id"`
	Name              string   `json:"name"`
	AllowedAddresses  []string `json:"allowed_addresses"`
	TwoFactorRequired bool     `json:"two_factor_required"`
	Standing          string   `json:"standing"`
	Verified          bool     `json:"verified"`
	CreatedAt         string   `json:"created_at"`
}

// OrganizationChange is what changes of it. What is nil stays.
type OrganizationChange struct {
	Name              *string   `json:"name,omitempty"`
	AllowedAddresses  *[]string `json:"allowed_addresses,omitempty"`
	TwoFactorRequired *bool     `json:"two_factor_required,omitempty"`
}

// Member is a person who belongs to the organisation.
type Member struct {
	ID        string `json:"id"`
	UserID    string `json:"user_id"`
	Email     string `json:"email"`
	Name      string `json:"name"`
	Role      string `json:"role"`
	TwoFactor bool   `json:"two_factor"`
	CreatedAt string `json:"created_at"`
}

// InvitedRole is a role in a project that who accepts an invitation has from then on.
type InvitedRole struct {
	ProjectID string `json:"project_id"`
	Role      string `json:"role"`
}

// NewInvitation is whom to invite.
type NewInvitation struct {
	Email        string        `json:"email"`
	Role         string        `json:"role"`
	ProjectRoles []InvitedRole `json:"project_roles,omitempty"`
}

// Invitation is a mail that somebody may join by. State is "pending" for as long as they may.
type Invitation struct {
	ID        string `json:"id"`
	State     string `json:"state"`
	CreatedAt string `json:"created_at"`
	NewInvitation
}

// RoleChange gives a member another role.
type RoleChange struct {
	Role string `json:"role"`
}

// Organization reads it.
func (c *Client) Organization(ctx context.Context) (Organization, error) {
	var found Organization
	err := c.get(ctx, "/organizations/current", nil, &found)
	return found, err
}

// UpdateOrganization changes it; what would lock out the caller is refused.
func (c *Client) UpdateOrganization(
	ctx context.Context, change OrganizationChange,
) (Organization, error) {
	var found Organization
	err := c.patch(ctx, "/organizations/current", change, &found)
	return found, err
}

// Members reads all of them.
func (c *Client) Members(ctx context.Context) ([]Member, error) {
	return list[Member](ctx, c, "/members", nil, pageOfRows)
}

// UpdateMember gives one another role.
func (c *Client) UpdateMember(ctx context.Context, id string, change RoleChange) (Member, error) {
	var found Member
	err := c.patch(ctx, at("members", id), change, &found)
	return found, err
}

// DeleteMember has one belong to the organisation no longer.
func (c *Client) DeleteMember(ctx context.Context, id string) error {
	return c.remove(ctx, at("members", id), nil, nil)
}

// Invitations reads all of them, those that are over too.
func (c *Client) Invitations(ctx context.Context) ([]Invitation, error) {
	return list[Invitation](ctx, c, "/invitations", nil, pageOfRows)
}

// CreateInvitation sends a mail.
func (c *Client) CreateInvitation(ctx context.Context, wanted NewInvitation) (Invitation, error) {
	var made Invitation
	_, err := c.post(ctx, "/invitations", wanted, &made)
	return made, err
}

// RevokeInvitation ends one: its mail's link works no longer. The code of the refusal of one that
// was accepted meanwhile is "invitation_closed".
func (c *Client) RevokeInvitation(ctx context.Context, id string) error {
	return c.remove(ctx, at("invitations", id), nil, nil)
}
