package provider

import (
	"encoding/json"
	"fmt"
	"net/http"

	"freshet/terraform/internal/api"
)

// fakeAccounts is the fake's organization with its people, and its alerts.
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

// accept makes the invited person a member.
func (f *fakeAccounts) accept(id string) {
	invitation := f.invitations[id]
	invitation.State = "accepted"
	f.invitations[id] = invitation
	f.members["mem_"+id] = api.Member{
		ID: "mem_" + id, UserID: "usr_" + id, Email: invitation.Email, Role: invitation.Role,
	}
}

// serveAccounts answers requests for the organization's own resources, and says whether it did.
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
		var change api.OrganizationChange
		_ = json.NewDecoder(request.Body).Decode(&change)
		if change.AllowedAddresses != nil && len(*change.AllowedAddresses) > 0 &&
			(*change.AllowedAddresses)[0] == "198.51.100.0/24" {
			refuse(answer, http.StatusUnprocessableEntity, "would_lock_out", "/allowed_addresses")
			return
		}
		replace(&f.organization.Name, change.Name)
		replace(&f.organization.AllowedAddresses, change.AllowedAddresses)
		replace(&f.organization.TwoFactorRequired, change.TwoFactorRequired)
	}
	writeJSON(answer, http.StatusOK, f.organization)
}

func (f *fakeAccounts) serveMembers(
	answer http.ResponseWriter, request *http.Request, id string,
) {
	member, exists := f.members[id]
	switch {
	case id == "":
		writeJSON(answer, http.StatusOK, items(f.members))
	case !exists:
		refuse(answer, http.StatusNotFound, "not_found", "")
	case request.Method == http.MethodPatch:
		var change api.RoleChange
		_ = json.NewDecoder(request.Body).Decode(&change)
		member.Role = change.Role
		f.members[id] = member
		writeJSON(answer, http.StatusOK, member)
	case request.Method == http.MethodDelete:
		delete(f.members, id)
		answer.WriteHeader(http.StatusNoContent)
	}
}

func (f *fakeAccounts) serveInvitations(
	answer http.ResponseWriter, request *http.Request, id string,
) {
	invitation := f.invitations[id]
	switch {
	case request.Method == http.MethodGet:
		writeJSON(answer, http.StatusOK, items(f.invitations))
	case request.Method == http.MethodPost:
		f.invite(answer, request)
	case invitation.State == "accepted":
		refuse(answer, http.StatusConflict, "invitation_closed", "")
	default:
		invitation.State = "revoked"
		f.invitations[id] = invitation
		answer.WriteHeader(http.StatusNoContent)
	}
}

func (f *fakeAccounts) invite(answer http.ResponseWriter, request *http.Request) {
	var newInvitation api.NewInvitation
	_ = json.NewDecoder(request.Body).Decode(&newInvitation)
	for _, member := range f.members {
		if member.Email == newInvitation.Email {
			refuse(answer, http.StatusConflict, "already_member", "/email")
			return
		}
	}
	for _, invitation := range f.invitations {
		if invitation.Email == newInvitation.Email && invitation.State == "pending" {
			refuse(answer, http.StatusConflict, "already_invited", "/email")
			return
		}
	}
	id := fmt.Sprintf("ivt_%d", len(f.invitations))
	invitation := api.Invitation{ID: id, State: "pending", NewInvitation: newInvitation}
	f.invitations[id] = invitation
	writeJSON(answer, http.StatusCreated, invitation)
}

func (f *fakeAccounts) serveAlerts(answer http.ResponseWriter, request *http.Request, id string) {
	switch request.Method {
	case http.MethodGet:
		writeJSON(answer, http.StatusOK, items(f.alerts))
	case http.MethodDelete:
		delete(f.alerts, id)
		answer.WriteHeader(http.StatusNoContent)
	default:
		status := http.StatusOK
		alert := f.alerts[id]
		var change api.NewAlert
		_ = json.NewDecoder(request.Body).Decode(&change)
		if request.Method == http.MethodPost {
			status = http.StatusCreated
			id = fmt.Sprintf("alr_%d", len(f.alerts))
			alert = api.Alert{ID: id, ClusterID: change.ClusterID, Kind: change.Kind, State: "ok"}
		}
		replace(&alert.Name, change.Name)
		replace(&alert.Group, change.Group)
		replace(&alert.Threshold, change.Threshold)
		replace(&alert.ForS, change.ForS)
		replace(&alert.Emails, change.Emails)
		f.alerts[id] = alert
		writeJSON(answer, status, alert)
	}
}

// replace overwrites a value where the change has one.
func replace[T any](value, change *T) {
	if change != nil {
		*value = *change
	}
}
