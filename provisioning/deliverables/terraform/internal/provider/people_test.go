package provider

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"freshet/terraform/internal/api"
)

func bob(role string) object { return object{"email": "bob@example.org", "role": role} }

func TestAPersonIsInvitedAndThenAMember(t *testing.T) {
	service, endpoint := newFake(t)
	state := newWalker(t, endpoint).made("freshet_member", nil, bob("viewer"))
	if state["id"] != "bob@example.org" || service.invitations["ivt_0"].Role != "viewer" {
		t.Errorf("%v, %v", state, service.invitations)
	}
	service.accept("ivt_0")
	walk := newWalker(t, endpoint)
	service.asked = nil
	joined := walk.read("freshet_member", state)
	if fmt.Sprint(joined) != fmt.Sprint(state) {
		t.Errorf("%v is not %v: accepting is a difference", joined, state)
	}
	if !slices.Equal(service.asked, []string{"GET /members"}) {
		t.Errorf("asked %v", service.asked)
	}
	state = walk.made("freshet_member", state, bob("developer"))
	if service.members["mem_ivt_0"].Role != "developer" || len(service.invitations) != 1 {
		t.Errorf("%v, %v", service.members, service.invitations)
	}
	walk.made("freshet_member", state, nil)
	if len(service.members) != 1 {
		t.Errorf("left %v", service.members)
	}
}

func TestAnotherRoleOfWhoIsInvitedIsAnotherInvitation(t *testing.T) {
	service, endpoint := newFake(t)
	state := newWalker(t, endpoint).made("freshet_member", nil, bob("viewer"))
	invitation := service.invitations["ivt_0"]
	invitation.ProjectRoles = []api.InvitedRole{{ProjectID: "prj_a", Role: "developer"}}
	service.invitations["ivt_0"] = invitation
	walk := newWalker(t, endpoint)
	state = walk.made("freshet_member", state, bob("admin"))
	before, after := service.invitations["ivt_0"], service.invitations["ivt_1"]
	if before.State != "revoked" || after.State != "pending" || after.Role != "admin" ||
		len(after.ProjectRoles) != 1 {
		t.Errorf("%v", service.invitations)
	}
	walk.made("freshet_member", state, nil)
	if service.invitations["ivt_1"].State != "revoked" {
		t.Errorf("%v", service.invitations)
	}
}

// The list says that somebody is invited; they accept before Terraform acts on it.
func TestWhoAcceptsMeanwhileIsChangedAndRemovedAsAMember(t *testing.T) {
	for _, config := range []object{bob("admin"), nil} {
		service, endpoint := newFake(t)
		walk := newWalker(t, endpoint)
		state := walk.read("freshet_member",
			walk.made("freshet_member", nil, bob("viewer")))
		service.accept("ivt_0")
		walk.made("freshet_member", state, config)
		member, exists := service.members["mem_ivt_0"]
		if exists != (config != nil) || exists && member.Role != "admin" {
			t.Errorf("%v became %v", config, service.members)
		}
	}
}

func TestAnInvitationThatIsOverIsPlannedAnew(t *testing.T) {
	service, endpoint := newFake(t)
	state := newWalker(t, endpoint).made("freshet_member", nil, bob("viewer"))
	over := service.invitations["ivt_0"]
	over.State = "expired"
	service.invitations["ivt_0"] = over
	if state := newWalker(t, endpoint).read("freshet_member", state); state != nil {
		t.Errorf("%v", state)
	}
	newWalker(t, endpoint).made("freshet_member", nil, bob("viewer"))
	if service.invitations["ivt_1"].State != "pending" {
		t.Errorf("%v", service.invitations)
	}
	newWalker(t, endpoint).made("freshet_member", state, nil)
}

func TestPeopleOfBeforeAreImported(t *testing.T) {
	_, endpoint := newFake(t)
	anna := object{"email": "anna@example.org", "role": "owner"}
	_, said := newWalker(t, endpoint).apply("freshet_member", nil, anna)
	if len(said) != 1 || !strings.Contains(said[0].Detail, "import anna@example.org") {
		t.Errorf("said %v", said)
	}
	imported, said := newWalker(t, endpoint).imported("freshet_member", "anna@example.org")
	if imported["role"] != "owner" {
		t.Errorf("%v (%v)", imported, said)
	}
	invited := newWalker(t, endpoint).made("freshet_member", nil, bob("viewer"))
	imported, _ = newWalker(t, endpoint).imported("freshet_member", "bob@example.org")
	if fmt.Sprint(imported) != fmt.Sprint(invited) {
		t.Errorf("%v is not %v", imported, invited)
	}
	imported, _ = newWalker(t, endpoint).imported("freshet_member", "x@example.org")
	if imported != nil {
		t.Errorf("imported %v", imported)
	}
	for _, wrong := range []string{"Bob@example.org", "bob", "@example.org", " b@example.org"} {
		config := object{"email": wrong}
		if len(newWalker(t, endpoint).validated("freshet_member", config)) == 0 {
			t.Errorf("took %q", wrong)
		}
	}
}

func TestSettingsThatAreLeftOutStay(t *testing.T) {
	service, endpoint := newFake(t)
	service.organization.TwoFactorRequired = true
	config := object{"allowed_addresses": []any{"192.0.2.0/24"}}
	walk := newWalker(t, endpoint)
	state := walk.made("freshet_organization_settings", nil, config)
	if state["name"] != "Mine" || state["two_factor_required"] != true || state["id"] != "org_a" {
		t.Errorf("%v", state)
	}
	service.organization.Name = "Ours"
	config["two_factor_required"] = false
	state = newWalker(t, endpoint).made("freshet_organization_settings", state, config)
	current := service.organization
	if current.Name != "Ours" || current.TwoFactorRequired || len(current.AllowedAddresses) != 1 {
		t.Errorf("%+v", current)
	}
	said := walk.plan("freshet_organization_settings", state, nil).said
	if len(said) != 1 || said[0].Summary != "The organization keeps its settings" {
		t.Errorf("said %v", said)
	}
}

func TestSettingsAreTheKeysOwnOrganizations(t *testing.T) {
	service, endpoint := newFake(t)
	for _, id := range []string{"current", "org_a"} {
		imported, said := newWalker(t, endpoint).imported("freshet_organization_settings", id)
		if imported["name"] != "Mine" {
			t.Errorf("%v (%v)", imported, said)
		}
	}
	walk := newWalker(t, endpoint)
	if _, said := walk.imported("freshet_organization_settings", "org_b"); len(said) == 0 {
		t.Error("took another one")
	}
	state := object{"id": "org_b", "name": "Theirs"}
	if imported := walk.read("freshet_organization_settings", state); imported != nil {
		t.Errorf("%v", imported)
	}
	config := object{"allowed_addresses": []any{"198.51.100.0/24"}}
	_, said := walk.apply("freshet_organization_settings", nil, config)
	if len(said) != 1 || !strings.Contains(said[0].Attribute.String(), "allowed_addresses") {
		t.Errorf("said %v", said)
	}
	if len(service.organization.AllowedAddresses) != 0 {
		t.Errorf("%+v", service.organization)
	}
}

func TestNetworksAreWrittenAsTheyAreKept(t *testing.T) {
	_, endpoint := newFake(t)
	walk := newWalker(t, endpoint)
	for text, right := range map[string]bool{
		"192.0.2.0/24": true, "2001:db8::/32": true, "192.0.2.7/32": true, "0.0.0.0/0": true,
		"192.0.2.7": false, "192.0.2.7/24": false, "2001:DB8::/32": false, "10.0.0.0/33": false,
		"::ffff:192.0.2.0/120": false, "2001:db8:0::/32": false, "anywhere": false, "": false,
	} {
		config := object{"allowed_addresses": []any{text}}
		said := walk.validated("freshet_organization_settings", config)
		if (len(said) == 0) != right {
			t.Errorf("%q: %v", text, said)
		}
	}
}
