package api

import (
	"context"
)

// Project holds clusters, and is what roles are given in.
type Project struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
	Default   bool              `json:"default"`
	CreatedAt string            `json:"created_at"`
}

// ProjectWish is what a project shall be. What is nil stays, or is the service's to choose.
type ProjectWish struct {
	Name   *string            `json:"name,omitempty"`
	Labels *map[string]string `json:"labels,omitempty"`
}

// ServiceAccount is a program of the organisation, which acts by API keys of its own.
type ServiceAccount struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Role        string `json:"role"`
	Disabled    bool   `json:"disabled"`
	CreatedAt   string `json:"created_at"`
}

// NewServiceAccount is what a service account shall be.
type NewServiceAccount struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Role        string `json:"role,omitempty"`
}

// ServiceAccountChange is what changes of one. What is nil stays.
type ServiceAccountChange struct {
	Name        *string `json:"name,omitempty"`
	Description *string `json:"description,omitempty"`
	Role        *string `json:"role,omitempty"`
	Disabled    *bool   `json:"disabled,omitempty"`
}

// NewRoleBinding gives a user or a service account a role in a project.
type NewRoleBinding struct {
	PrincipalType string `json:"principal_type"`
	PrincipalID   string `json:"principal_id"`
	ProjectID     string `json:"project_id"`
	Role          string `json:"role"`
}

// RoleBinding is one that is there.
type RoleBinding struct {
	ID        string `json:"id"`
	CreatedAt string `json:"created_at"`
	NewRoleBinding
}

// Projects reads all of them.
func (c *Client) Projects(ctx context.Context) ([]Project, error) {
	return list[Project](ctx, c, "/projects", nil, pageOfRows)
}

// CreateProject makes one.
func (c *Client) CreateProject(ctx context.Context, wanted ProjectWish) (Project, error) {
	var made Project
	_, err := c.post(ctx, "/projects", wanted, &made)
	return made, err
}

// UpdateProject changes one.
func (c *Client) UpdateProject(
	ctx context.Context, id string, change ProjectWish,
) (Project, error) {
	var found Project
	err := c.patch(ctx, at("projects", id), change, &found)
	return found, err
}

// DeleteProject removes one that has no clusters.
func (c *Client) DeleteProject(ctx context.Context, id string) error {
	return c.remove(ctx, at("projects", id), nil, nil)
}

// ServiceAccounts reads all of them.
func (c *Client) ServiceAccounts(ctx context.Context) ([]ServiceAccount, error) {
	return list[ServiceAccount](ctx, c, "/service-accounts", nil, pageOfRows)
}

// CreateServiceAccount makes one, without keys.
func (c *Client) CreateServiceAccount(
	ctx context.Context, wanted NewServiceAccount,
) (ServiceAccount, error) {
	var made ServiceAccount
	_, err := c.post(ctx, "/service-accounts", wanted, &made)
	return made, err
}

// UpdateServiceAccount changes one.
func (c *Client) UpdateServiceAccount(
	ctx context.Context, id string, change ServiceAccountChange,
) (ServiceAccount, error) {
	var found ServiceAccount
	err := c.patch(ctx, at("service-accounts", id), change, &found)
	return found, err
}

// DeleteServiceAccount removes one and ends its keys.
func (c *Client) DeleteServiceAccount(ctx context.Context, id string) error {
	return c.remove(ctx, at("service-accounts", id), nil, nil)
}

// RoleBindings reads all of them.
func (c *Client) RoleBindings(ctx context.Context) ([]RoleBinding, error) {
	return list[RoleBinding](ctx, c, "/role-bindings", nil, pageOfRows)
}

// CreateRoleBinding gives a role.
func (c *Client) CreateRoleBinding(
	ctx context.Context, wanted NewRoleBinding,
) (RoleBinding, error) {
	var made RoleBinding
	_, err := c.post(ctx, "/role-bindings", wanted, &made)
	return made, err
}

// DeleteRoleBinding takes a role away.
func (c *Client) DeleteRoleBinding(ctx context.Context, id string) error {
	return c.remove(ctx, at("role-bindings", id), nil, nil)
}
