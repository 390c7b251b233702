package provider

import (
	"encoding/json"
	"fmt"
	"net/http"

	"freshet/terraform/internal/api"
)

// fakeAccounts is the fake's organisation with its people, and its alerts.
type fakeAccounts struct {
	organization api.Organization
	members      map[string]api.Member     // by id
	invitations  map[string]api.Invitation // by id
	alerts       map[string]api.Alert      // by id
}

func newFakeAccounts() fakeAccounts {
	anna := api.Member{ID: "mem_anna", UserID: "usr_anna", Email: "anna@example.org", Role: "owner"}
	return fakeAccounts{
		organization: api.Organization{ID: "org_a", Name: "Mine", AllowedAddresses: []string{}},
		members:      map[string]api.Member{anna.ID: anna},
		invitations:  map[string]api.Invitation{},
		alerts:       map[string]api.Alert{},
	}
}

// accept has who was invited join.
func (f *fakeAccounts) accept(id string) {
	invitation := f.invitations[id]
	invitation.State = "accepted"
	f.invitations[id] = invitation
	f.members["mem_"+id] = api.Member{
		ID: "mem_" + id, UserID: "usr_" + id, Email: invitation.Email, Role: invitation.Role,
	}
}

// serveAccounts answers what it knows, and tells whether it did.
func (f *fakeAccounts) serveAccounts(
	answer http.ResponseWriter, request *http.Request, parts []string,
) bool {
	id := ""
	if len(parts) > 1 {
		id = parts[1]
	}
	switch parts[0] {
	case "organizations":
		f.serveOrganization(answer, request)
	case "members":
		f.serveMembers(answer, request, id)
	case "invitations":
		f.serveInvitations(answer, request, id)
	case "alerts":
		f.serveAlerts(answer, request, id)
	default:
		return false
	}
	return true
}

func (f *fakeAccounts) serveOrganization(answer http.ResponseWriter, request *http.Request) {
	if request.Method == http.MethodPatch {
		var wanted api.OrganizationChange
		_ = json.NewDecoder(request.Body).Decode(&wanted)
		if wanted.AllowedAddresses != nil && len(*wanted.AllowedAddresses) > 0 &&
			(*wanted.AllowedAddresses)[0] == "198.51.100.0/24" {
			refuse(answer, http.StatusUnprocessableEntity, "would_lock_out", "/allowed_addresses")
			return
		}
		replace(&f.organization.Name, wanted.Name)
		replace(&f.organization.AllowedAddresses, wanted.AllowedAddresses)
		replace(&f.organization.TwoFactorRequired, wanted.TwoFactorRequired)
	}
	tell(answer, http.StatusOK, f.organization)
}

func (f *fakeAccounts) serveMembers(
	answer http.ResponseWriter, request *http.Request, id string,
) {
	found, there := f.members[id]
	switch {
	case id == "":
		tell(answer, http.StatusOK, items(f.members))
	case !there:
		refuse(answer, http.StatusNotFound, "not_found", "")
	case request.Method == http.MethodPatch:
		var wanted api.RoleChange
		_ = json.NewDecoder(request.Body).Decode(&wanted)
		found.Role = wanted.Role
		f.members[id] = found
		tell(answer, http.StatusOK, found)
	case request.Method == http.MethodDelete:
		delete(f.members, id)
		answer.WriteHeader(http.StatusNoContent)
	}
}

func (f *fakeAccounts) serveInvitations(
	answer http.ResponseWriter, request *http.Request, id string,
) {
	found := f.invitations[id]
	switch {
	case request.Method == http.MethodGet:
		tell(answer, http.StatusOK, items(f.invitations))
	case request.Method == http.MethodPost:
		f.invite(answer, request)
	case found.State == "accepted":
		refuse(answer, http.StatusConflict, "invitation_closed", "")
	default:
		found.State = "revoked"
		f.invitations[id] = found
		answer.WriteHeader(http.StatusNoContent)
	}
}

func (f *fakeAccounts) invite(answer http.ResponseWriter, request *http.Request) {
	var wanted api.NewInvitation
	_ = json.NewDecoder(request.Body).Decode(&wanted)
	for _, each := range f.members {
		if each.Email == wanted.Email {
			refuse(answer, http.StatusConflict, "already_member", "/email")
			return
		}
	}
	for _, each := range f.invitations {
		if each.Email == wanted.Email && each.State == "pending" {
			refuse(answer, http.StatusConflict, "already_invited", "/email")
			return
		}
	}
	id := fmt.Sprintf("ivt_%d", len(f.invitations))
	made := api.Invitation{ID: id, State: "pending", NewInvitation: wanted}
	f.invitations[id] = made
	tell(answer, http.StatusCreated, made)
}

func (f *fakeAccounts) serveAlerts(answer http.ResponseWriter, request *http.Request, id string) {
	switch request.Method {
	case http.MethodGet:
		tell(answer, http.StatusOK, items(f.alerts))
	case http.MethodDelete:
		delete(f.alerts, id)
		answer.WriteHeader(http.StatusNoContent)
	default:
		status := http.StatusOK
		found := f.alerts[id]
		var wanted api.NewAlert
		_ = json.NewDecoder(request.Body).Decode(&wanted)
		if request.Method == http.MethodPost {
			status = http.StatusCreated
			id = fmt.Sprintf("alr_%d", len(f.alerts))
			found = api.Alert{ID: id, ClusterID: wanted.ClusterID, Kind: wanted.Kind, State: "ok"}
		}
		replace(&found.Name, wanted.Name)
		replace(&found.Group, wanted.Group)
		replace(&found.Threshold, wanted.Threshold)
		replace(&found.ForS, wanted.ForS)
		replace(&found.Emails, wanted.Emails)
		f.alerts[id] = found
		tell(answer, status, found)
	}
}

// replace takes what a wish has.
func replace[T any](value, wanted *T) {
	if wanted != nil {
		*value = *wanted
	}
}
