package api

import (
	"context"
)

// Project is a part of the organization that has clusters and in which people have roles.
type Project struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
	Default   bool              `json:"default"`
	CreatedAt string            `json:"created_at"`
}

// ProjectWish is a new project, or the change of one. A field that is nil stays as it is, or is
// chosen by the service.
type ProjectWish struct {
	Name   *string            `json:"name,omitempty"`
	Labels *map[string]string `json:"labels,omitempty"`
}

// ServiceAccount is a program of the organization, which has API keys of its own.
type ServiceAccount struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Role        string `json:"role"`
	Disabled    bool   `json:"disabled"`
	CreatedAt   string `json:"created_at"`
}

// NewServiceAccount is a service account to be created.
type NewServiceAccount struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Role        string `json:"role,omitempty"`
}

// ServiceAccountChange is the change of a service account. A field that is nil stays as it is.
type ServiceAccountChange struct {
	Name        *string `json:"name,omitempty"`
	Description *string `json:"description,omitempty"`
	Role        *string `json:"role,omitempty"`
	Disabled    *bool   `json:"disabled,omitempty"`
}

// NewRoleBinding is a role in a project that a user or a service account is to get.
type NewRoleBinding struct {
	PrincipalType string `json:"principal_type"`
	PrincipalID   string `json:"principal_id"`
	ProjectID     string `json:"project_id"`
	Role          string `json:"role"`
}

// RoleBinding is a role in a project that a user or a service account has.
type RoleBinding struct {
	ID        string `json:"id"`
	CreatedAt string `json:"created_at"`
	NewRoleBinding
}

// Projects reads all projects.
func (c *Client) Projects(ctx context.Context) ([]Project, error) {
	return list[Project](ctx, c, "/projects", nil, pageOfRows)
}

// CreateProject creates a project.
func (c *Client) CreateProject(ctx context.Context, project ProjectWish) (Project, error) {
	var created Project
	_, err := c.post(ctx, "/projects", project, &created)
	return created, err
}

// UpdateProject changes a project.
func (c *Client) UpdateProject(
	ctx context.Context, id string, change ProjectWish,
) (Project, error) {
	var project Project
	err := c.patch(ctx, at("projects", id), change, &project)
	return project, err
}

// DeleteProject deletes a project that has no clusters.
func (c *Client) DeleteProject(ctx context.Context, id string) error {
	return c.remove(ctx, at("projects", id), nil, nil)
}

// ServiceAccounts reads all service accounts.
func (c *Client) ServiceAccounts(ctx context.Context) ([]ServiceAccount, error) {
	return list[ServiceAccount](ctx, c, "/service-accounts", nil, pageOfRows)
}

// CreateServiceAccount creates a service account without keys.
func (c *Client) CreateServiceAccount(
	ctx context.Context, account NewServiceAccount,
) (ServiceAccount, error) {
	var created ServiceAccount
	_, err := c.post(ctx, "/service-accounts", account, &created)
	return created, err
}

// UpdateServiceAccount changes a service account.
func (c *Client) UpdateServiceAccount(
	ctx context.Context, id string, change ServiceAccountChange,
) (ServiceAccount, error) {
	var account ServiceAccount
	err := c.patch(ctx, at("service-accounts", id), change, &account)
	return account, err
}

// DeleteServiceAccount deletes a service account and ends its keys.
func (c *Client) DeleteServiceAccount(ctx context.Context, id string) error {
	return c.remove(ctx, at("service-accounts", id), nil, nil)
}

// RoleBindings reads the role bindings of all projects.
func (c *Client) RoleBindings(ctx context.Context) ([]RoleBinding, error) {
	return list[RoleBinding](ctx, c, "/role-bindings", nil, pageOfRows)
}

// CreateRoleBinding gives a role.
func (c *Client) CreateRoleBinding(
	ctx context.Context, binding NewRoleBinding,
) (RoleBinding, error) {
	var created RoleBinding
	_, err := c.post(ctx, "/role-bindings", binding, &created)
	return created, err
}

// DeleteRoleBinding takes a role away.
func (c *Client) DeleteRoleBinding(ctx context.Context, id string) error {
	return c.remove(ctx, at("role-bindings", id), nil, nil)
}
