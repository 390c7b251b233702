package api

import (
	"context"
)

// Credential is a credential of Kafka clients, without its password.
type Credential struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Username  string `json:"username"`
	Principal string `json:"principal"`
	Role      string `json:"role"`
	Mechanism string `json:"mechanism"`
	// The mechanisms that it can authenticate by: one alone where it was made before the service
	// stored both. None where the cell did not answer.
	Mechanisms []string `json:"mechanisms"`
	CreatedAt  string   `json:"created_at"`
	// The ids of the credential in whose place a rotation made this one, and of the one that
	// another rotation made in its place. A credential that was replaced works until its overlap is
	// over.
	Replaces   *string `json:"replaces"`
	ReplacedBy *string `json:"replaced_by"`
}

// Rotation says how a credential is replaced by another with the same rights.
type Rotation struct {
	OverlapS int64   `json:"overlap_s"`
	Password *string `json:"password,omitempty"`
}

// NewCredential is a credential to be created. Without a password the service makes one.
type NewCredential struct {
	Name      string  `json:"name"`
	Role      string  `json:"role"`
	Mechanism string  `json:"mechanism,omitempty"`
	Password  *string `json:"password,omitempty"`
}

// CreatedCredential is a new credential with its password, which is shown only now.
type CreatedCredential struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Username  string `json:"username"`
	Password  string `json:"password"`
	Principal string `json:"principal"`
	Role      string `json:"role"`
	Mechanism string `json:"mechanism"`
	// The mechanisms that it can authenticate by: both.
	Mechanisms []string `json:"mechanisms"`
	CreatedAt  string   `json:"created_at"`
	Replaces   *string  `json:"replaces"`
}

// Credential is the credential without its password.
func (c CreatedCredential) Credential() Credential {
	return Credential{
		ID: c.ID, Name: c.Name, Username: c.Username, Principal: c.Principal, Role: c.Role,
		Mechanism: c.Mechanism, Mechanisms: c.Mechanisms, CreatedAt: c.CreatedAt, Replaces: c.Replaces,
	}
}

// Credentials reads the credentials of a cluster.
func (c *Client) Credentials(ctx context.Context, cluster string) ([]Credential, error) {
	return list[Credential](ctx, c, at("clusters", cluster, "credentials"), nil, pageOfRows)
}

// CreateCredential creates a credential. Repeating it is safe, because the service stores the
// answer under the call's Idempotency-Key.
func (c *Client) CreateCredential(
	ctx context.Context, cluster string, credential NewCredential,
) (CreatedCredential, error) {
	var created CreatedCredential
	_, err := c.post(ctx, at("clusters", cluster, "credentials"), credential, &created)
	return created, err
}

// RenameCredential gives a credential another name.
func (c *Client) RenameCredential(
	ctx context.Context, cluster, id, name string,
) (Credential, error) {
	var credential Credential
	body := map[string]string{"name": name}
	err := c.patch(ctx, at("clusters", cluster, "credentials", id), body, &credential)
	return credential, err
}

// RotateCredential makes another credential in the place of one, which ends after the overlap.
func (c *Client) RotateCredential(
	ctx context.Context, cluster, id string, how Rotation,
) (CreatedCredential, error) {
	var created CreatedCredential
	path := at("clusters", cluster, "credentials", id) + ":rotate"
	_, err := c.post(ctx, path, how, &created)
	return created, err
}

// DeleteCredential ends a credential; its connections close within seconds.
func (c *Client) DeleteCredential(ctx context.Context, cluster, id string) error {
	return c.remove(ctx, at("clusters", cluster, "credentials", id), nil, nil)
}

// APIKey is a new API key of the organization with its secret, which is shown only now.
type APIKey struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Role      string  `json:"role"`
	ExpiresAt *string `json:"expires_at"`
	Secret    string  `json:"secret"`
}

// NewAPIKey is an API key to be created. ExpiresAt is RFC 3339.
type NewAPIKey struct {
	Name             string  `json:"name"`
	Role             string  `json:"role,omitempty"`
	ServiceAccountID *string `json:"service_account_id,omitempty"`
	ExpiresAt        *string `json:"expires_at,omitempty"`
}

// CreateAPIKey creates an API key.
func (c *Client) CreateAPIKey(ctx context.Context, key NewAPIKey) (APIKey, error) {
	var created APIKey
	_, err := c.post(ctx, "/api-keys", key, &created)
	return created, err
}

// RevokeAPIKey ends an API key.
func (c *Client) RevokeAPIKey(ctx context.Context, id string) error {
	return c.remove(ctx, at("api-keys", id), nil, nil)
}
