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
	// Where it was rotated: the one in whose place it is, and the one in its place. A credential that
	// was replaced works until its overlap is over.
	Replaces   *string `json:"replaces"`
	ReplacedBy *string `json:"replaced_by"`
}

// Rotation is how a credential is replaced by another with the same rights.
type Rotation struct {
	OverlapS int64   `json:"overlap_s"`
	Password *string `json:"password,omitempty"`
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
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Username  string  `json:"username"`
	Password  string  `json:"password"`
	Principal string  `json:"principal"`
	Role      string  `json:"role"`
	Mechanism string  `json:"mechanism"`
	CreatedAt string  `json:"created_at"`
	Replaces  *string `json:"replaces"`
}

// Credential is what stays of it when the password is forgotten.
func (c CreatedCredential) Credential() Credential {
	return Credential{
		ID: c.ID, Name: c.Name, Username: c.Username, Principal: c.Principal, Role: c.Role,
		Mechanism: c.Mechanism, CreatedAt: c.CreatedAt, Replaces: c.Replaces,
	}
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

// RenameCredential gives one another name.
func (c *Client) RenameCredential(
	ctx context.Context, cluster, id, name string,
) (Credential, error) {
	var found Credential
	body := map[string]string{"name": name}
	err := c.patch(ctx, at("clusters", cluster, "credentials", id), body, &found)
	return found, err
}

// RotateCredential makes another in the place of one, which ends after the overlap.
func (c *Client) RotateCredential(
	ctx context.Context, cluster, id string, how Rotation,
) (CreatedCredential, error) {
	var made CreatedCredential
	path := at("clusters", cluster, "credentials", id) + ":rotate"
	_, err := c.post(ctx, path, how, &made)
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
	Name             string  `json:"name"`
	Role             string  `json:"role,omitempty"`
	ServiceAccountID *string `json:"service_account_id,omitempty"`
	ExpiresAt        *string `json:"expires_at,omitempty"`
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
