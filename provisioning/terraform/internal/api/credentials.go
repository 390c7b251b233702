package api

import (
	"context"
)

// Credential of Kafka clients, without its password.
type Credential struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Username  string `json:"username"`
	Principal string `json:"principal"`
	Role      string `json:"role"`
	Mechanism string `json:"mechanism"`
	CreatedAt string `json:"created_at"`
}

// NewCredential is what a credential shall be. Without a password the service makes one.
type NewCredential struct {
	Name      string  `json:"name"`
	Role      string  `json:"role"`
	Mechanism string  `json:"mechanism,omitempty"`
	Password  *string `json:"password,omitempty"`
}

// CreatedCredential is a credential with its password, which is shown this once.
type CreatedCredential struct {
	Credential
	Password string `json:"password"`
}

// Credentials reads those of a cluster.
func (c *Client) Credentials(ctx context.Context, cluster string) ([]Credential, error) {
	return list[Credential](ctx, c, at("clusters", cluster, "credentials"), nil, pageOfRows)
}

// CreateCredential makes one. The service has it in its database: repeating is safe.
func (c *Client) CreateCredential(
	ctx context.Context, cluster string, wanted NewCredential,
) (CreatedCredential, error) {
	var made CreatedCredential
	_, err := c.post(ctx, at("clusters", cluster, "credentials"), wanted, &made)
	return made, err
}

// DeleteCredential ends one; its connections close within seconds.
func (c *Client) DeleteCredential(ctx context.Context, cluster, id string) error {
	return c.remove(ctx, at("clusters", cluster, "credentials", id), nil, nil)
}

// APIKey of the organisation, with its secret: it is shown this once.
type APIKey struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Role      string  `json:"role"`
	ExpiresAt *string `json:"expires_at"`
	Secret    string  `json:"secret"`
}

// NewAPIKey is what a key shall be. ExpiresAt is RFC 3339.
type NewAPIKey struct {
	Name      string  `json:"name"`
	Role      string  `json:"role,omitempty"`
	ExpiresAt *string `json:"expires_at,omitempty"`
}

// CreateAPIKey makes a key.
func (c *Client) CreateAPIKey(ctx context.Context, wanted NewAPIKey) (APIKey, error) {
	var made APIKey
	_, err := c.post(ctx, "/api-keys", wanted, &made)
	return made, err
}

// RevokeAPIKey ends a key.
func (c *Client) RevokeAPIKey(ctx context.Context, id string) error {
	return c.remove(ctx, at("api-keys", id), nil, nil)
}
