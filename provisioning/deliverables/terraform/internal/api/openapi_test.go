package api

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// document is the part of docs/reference/openapi.json that the types here must agree with.
type document struct {
	Paths      map[string]map[string]json.RawMessage `json:"paths"`
	Components struct {
		Schemas map[string]struct {
			Properties map[string]struct {
				Type any `json:"type"`
			} `json:"properties"`
			Required []string `json:"required"`
		} `json:"schemas"`
	} `json:"components"`
}

func readDocument(t *testing.T) document {
	t.Helper()
	root := filepath.Join("..", "..", "..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs/reference/openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var parsed document
	if err := json.Unmarshal(text, &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

// shapes are our types by the names that the document has for them.
var shapes = map[string]any{
	"Acl":                                ACL{},
	"NewAclRequest":                      NewACL{},
	"Alert":                              Alert{},
	"AlertCreateRequest":                 NewAlert{},
	"PatchedAlertUpdateRequest":          AlertWish{},
	"ApiKeyCreateRequest":                NewAPIKey{},
	"ApiKeyCreated":                      APIKey{},
	"Budget":                             Budget{},
	"BudgetCreateRequest":                BudgetWish{},
	"ClientQuota":                        ClientQuota{},
	"Cluster":                            Cluster{},
	"ClusterCreateRequest":               NewCluster{},
	"Condition":                          Condition{},
	"ConfigDetail":                       ConfigDetail{},
	"Credential":                         Credential{},
	"CredentialCreateRequest":            NewCredential{},
	"CredentialCreated":                  CreatedCredential{},
	"Endpoint":                           Endpoint{},
	"FieldError":                         FieldError{},
	"Invitation":                         Invitation{},
	"InvitationCreateRequest":            NewInvitation{},
	"InvitedRole":                        InvitedRole{},
	"Member":                             Member{},
	"PatchedMemberUpdateRequest":         RoleChange{},
	"NewTopicRequest":                    NewTopic{},
	"Operation":                          Operation{},
	"OperationError":                     OperationError{},
	"Organization":                       Organization{},
	"PatchedOrganizationUpdateRequest":   OrganizationChange{},
	"PatchedBudgetUpdateRequest":         BudgetWish{},
	"PatchedClusterUpdateRequest":        ClusterChange{},
	"Limit":                              Limit{},
	"Project":                            Project{},
	"ProjectCreateRequest":               ProjectWish{},
	"PatchedProjectUpdateRequest":        ProjectWish{},
	"ServiceAccount":                     ServiceAccount{},
	"ServiceAccountCreateRequest":        NewServiceAccount{},
	"PatchedServiceAccountUpdateRequest": ServiceAccountChange{},
	"RoleBinding":                        RoleBinding{},
	"RoleBindingCreateRequest":           NewRoleBinding{},
	"Quota":                              Quota{},
	"QuotaValuesRequest":                 QuotaWish{},
	"RotateRequest":                      Rotation{},
	"ScaleInputRequest":                  ScaleWish{},
	"SpecInputRequest":                   SpecWish{},
	"Region":                             Region{},
	"Scale":                              Scale{},
	"Spec":                               ClusterSpec{},
	"Status":                             ClusterStatus{},
	"Topic":                              Topic{},
	"TopicStatus":                        TopicStatus{},
	"UsageItem":                          UsageItem{},
}

// members returns a struct's fields by their JSON names, also those of embedded structs.
func members(kind reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for i := range kind.NumField() {
		field := kind.Field(i)
		if field.Anonymous {
			for name, inner := range members(field.Type) {
				fields[name] = inner
			}
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		fields[name] = field
	}
	return fields
}

func TestTypesAreTheServices(t *testing.T) {
	schemas := readDocument(t).Components.Schemas
	for name, value := range shapes {
		schema, known := schemas[name]
		if !known {
			t.Errorf("the API has no %s", name)
			continue
		}
		ours := members(reflect.TypeOf(value))
		for member, field := range ours {
			property, exists := schema.Properties[member]
			if !exists {
				t.Errorf("%s has no member %s", name, member)
			} else if wrong := mismatch(property.Type, field.Type); wrong != "" {
				t.Errorf("%s.%s: %s", name, member, wrong)
			}
		}
		if !strings.HasSuffix(name, "Request") {
			continue
		}
		for _, member := range schema.Required {
			if _, exists := ours[member]; !exists {
				t.Errorf("%s needs %s", name, member)
			}
		}
	}
}

// mismatch compares a JSON type with a Go one; a reference to another schema has none.
func mismatch(described any, kind reflect.Type) string {
	names := []string{}
	switch kinds := described.(type) {
	case string:
		names = append(names, kinds)
	case []any:
		for _, name := range kinds {
			names = append(names, name.(string))
		}
	}
	nullable := false
	fits := len(names) == 0
	inner := kind
	if kind.Kind() == reflect.Pointer {
		inner = kind.Elem()
	}
	expected := map[string][]reflect.Kind{
		"string":  {reflect.String},
		"integer": {reflect.Int64},
		"number":  {reflect.Float64},
		"boolean": {reflect.Bool},
		"array":   {reflect.Slice},
		"object":  {reflect.Map, reflect.Struct},
	}
	// Written as text, since a float64 would round it.
	if inner == reflect.TypeOf(Int64(0)) {
		expected["string"] = []reflect.Kind{reflect.Int64}
	}
	for _, name := range names {
		nullable = nullable || name == "null"
		for _, fitting := range expected[name] {
			fits = fits || inner.Kind() == fitting
		}
	}
	switch {
	case !fits:
		return "is " + strings.Join(names, " or ") + ", not " + kind.String()
	case nullable && kind.Kind() != reflect.Pointer && kind.Kind() != reflect.Slice:
		return "may be null, " + kind.String() + " may not"
	}
	return ""
}

func TestPathsAreTheServices(t *testing.T) {
	paths := readDocument(t).Paths
	for _, operation := range []string{
		"post /clusters", "get /clusters", "get /clusters/{id}", "patch /clusters/{id}",
		"delete /clusters/{id}", "get /regions", "get /operations/{id}",
		"get /clusters/{cluster_id}/topics", "post /clusters/{cluster_id}/topics",
		"get /clusters/{cluster_id}/topics/{name}", "patch /clusters/{cluster_id}/topics/{name}",
		"delete /clusters/{cluster_id}/topics/{name}",
		"post /clusters/{cluster_id}/topics/{name}/partitions",
		"get /clusters/{cluster_id}/acls", "post /clusters/{cluster_id}/acls",
		"delete /clusters/{cluster_id}/acls",
		"get /clusters/{cluster_id}/credentials", "post /clusters/{cluster_id}/credentials",
		"delete /clusters/{cluster_id}/credentials/{id}",
		"patch /clusters/{cluster_id}/credentials/{id}",
		"post /clusters/{cluster_id}/credentials/{id}:rotate",
		"get /clusters/{cluster_id}/quotas", "put /clusters/{cluster_id}/quotas",
		"delete /clusters/{cluster_id}/quotas",
		"post /api-keys", "delete /api-keys/{id}",
		"get /budgets", "post /budgets", "get /budgets/{id}", "patch /budgets/{id}",
		"delete /budgets/{id}", "get /usage", "get /limits",
		"get /projects", "post /projects", "patch /projects/{id}", "delete /projects/{id}",
		"get /service-accounts", "post /service-accounts", "patch /service-accounts/{id}",
		"delete /service-accounts/{id}", "get /role-bindings", "post /role-bindings",
		"delete /role-bindings/{id}",
		"get /alerts", "post /alerts", "patch /alerts/{id}", "delete /alerts/{id}",
		"get /organizations/current", "patch /organizations/current",
		"get /members", "patch /members/{id}", "delete /members/{id}",
		"get /invitations", "post /invitations", "delete /invitations/{id}",
	} {
		method, path, _ := strings.Cut(operation, " ")
		if _, exists := paths[root+path][method]; !exists {
			t.Errorf("the API has no %s", operation)
		}
	}
}

// The service refuses parameters that it does not know, and list sends a limit for every list.
func TestListsTakeALimit(t *testing.T) {
	paths := readDocument(t).Paths
	for _, path := range []string{
		"/alerts", "/budgets", "/clusters", "/invitations", "/limits", "/members", "/projects",
		"/regions", "/role-bindings", "/service-accounts", "/usage",
		"/clusters/{cluster_id}/acls", "/clusters/{cluster_id}/credentials",
		"/clusters/{cluster_id}/quotas", "/clusters/{cluster_id}/topics",
	} {
		var operation struct {
			Parameters []struct {
				Name string `json:"name"`
			} `json:"parameters"`
		}
		if err := json.Unmarshal(paths[root+path]["get"], &operation); err != nil {
			t.Fatalf("%s: %s", path, err)
		}
		names := map[string]bool{}
		for _, parameter := range operation.Parameters {
			names[parameter.Name] = true
		}
		if !names["limit"] || !names["cursor"] {
			t.Errorf("%s takes no pages", path)
		}
	}
}
