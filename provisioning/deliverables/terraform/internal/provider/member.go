package provider

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

const (
	invitationPending = "pending"
	invitationClosed  = "invitation_closed"
)

// memberModel is a person by their address: invited at first, a member as soon as they accept. Both
// are one resource, because nobody can say in a configuration which of them it is at the moment.
type memberModel struct {
	ID    types.String `tfsdk:"id"`
	Email types.String `tfsdk:"email"`
	Role  types.String `tfsdk:"role"`
}

func memberResource() resource.Resource {
	return &managed[memberModel]{
		frame:  frame{name: "member"},
		schema: memberSchema(),
		create: createMember,
		read:   readMember,
		update: updateMember,
		remove: removeMember,
		identify: func(_ context.Context, _ *session, id string) (map[string]string, error) {
			return map[string]string{"id": id, "email": id}, nil
		},
	}
}

func memberSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A person in the organization, by their address. Making it sends an " +
			"invitation, good for seven days; when it is accepted nothing changes here. One that ran " +
			"out, or a member who left, shows as to be made again. Destroying it revokes the " +
			"invitation or removes the member, with the keys that they made. Who has joined is in " +
			"`data.freshet_member`.",
		Attributes: map[string]schema.Attribute{
			"id": computedText("The address."),
			"email": fixedText("Address, in lower case.", mailAddress(),
				stringvalidator.LengthAtMost(254)),
			"role": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString("member"),
				MarkdownDescription: "Role in the organization: " + quoted(accountRoles) + ", at most " +
					"that of the API key. Default: `member`, which grants nothing but what " +
					"`freshet_role_binding` gives. Another role for somebody who has not accepted yet " +
					"sends another mail, and ends the link of the one before.",
				Validators: []validator.String{stringvalidator.OneOf(accountRoles...)},
			},
		},
	}
}

// person is a member, or an invitation that may still be accepted; the other field is nil.
type person struct {
	member     *api.Member
	invitation *api.Invitation
}

// personOf finds the member or the pending invitation with an address, or returns a not-found
// error.
func (s *session) personOf(ctx context.Context, email string) (person, error) {
	member, exists, err := s.members.Find(ctx, organization, email)
	if err != nil {
		return person{}, err
	}
	if exists {
		return person{member: &member}, nil
	}
	invitation, err := s.invitations.get(ctx, organization, email)
	return person{invitation: &invitation}, err
}

func (p person) role() string {
	if p.member != nil {
		return p.member.Role
	}
	return p.invitation.Role
}

// pendingInvitations returns a function that reads the invitations that may still be accepted.
func pendingInvitations(
	client *api.Client,
) func(context.Context) ([]api.Invitation, error) {
	return func(ctx context.Context) ([]api.Invitation, error) {
		all, err := client.Invitations(ctx)
		return slices.DeleteFunc(all, func(invitation api.Invitation) bool {
			return invitation.State != invitationPending
		}), err
	}
}

func createMember(ctx context.Context, s *session, plan *memberModel, _ memberModel) (bool, error) {
	email := plan.Email.ValueString()
	err := s.invite(ctx, api.NewInvitation{Email: email, Role: plan.Role.ValueString()})
	if api.HasCode(err, "already_member", "already_invited") {
		err = fmt.Errorf("%w: import %s to manage them here", err, email)
	}
	plan.ID = types.StringValue(email)
	return err == nil, err
}

func (s *session) invite(ctx context.Context, newInvitation api.NewInvitation) error {
	invitation, err := s.api.CreateInvitation(ctx, newInvitation)
	if err == nil {
		s.invitations.Put(organization, invitation)
	}
	return err
}

func readMember(ctx context.Context, s *session, state *memberModel) error {
	current, err := s.personOf(ctx, state.Email.ValueString())
	if err != nil {
		return err
	}
	state.ID = state.Email
	state.Role = types.StringValue(current.role())
	return nil
}

func updateMember(
	ctx context.Context, s *session, plan *memberModel, state, _ memberModel,
) error {
	email, role := state.Email.ValueString(), plan.Role.ValueString()
	return s.unlessAccepted(func() error {
		current, err := s.personOf(ctx, email)
		switch {
		case err != nil:
			return err
		case current.invitation != nil:
			if err := s.revoke(ctx, *current.invitation); err != nil {
				return err
			}
			// The new invitation keeps the roles in projects that somebody gave with the first one.
			again := current.invitation.NewInvitation
			again.Role = role
			return s.invite(ctx, again)
		}
		changed, err := s.api.UpdateMember(ctx, current.member.ID, api.RoleChange{Role: role})
		if err == nil {
			s.members.Put(organization, changed)
		}
		return err
	})
}

func removeMember(ctx context.Context, s *session, state memberModel) error {
	email := state.Email.ValueString()
	return s.unlessAccepted(func() error {
		current, err := s.personOf(ctx, email)
		switch {
		case api.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case current.invitation != nil:
			return s.revoke(ctx, *current.invitation)
		}
		return s.members.removed(organization, email, s.api.DeleteMember(ctx, current.member.ID))
	})
}

func (s *session) revoke(ctx context.Context, invitation api.Invitation) error {
	err := s.api.RevokeInvitation(ctx, invitation.ID)
	return s.invitations.removed(organization, invitation.Email, err)
}

// unlessAccepted calls do for a person. Where they accepted their invitation meanwhile, it calls do
// once more, which then finds a member.
func (s *session) unlessAccepted(do func() error) error {
	err := do()
	if api.HasCode(err, invitationClosed) {
		s.members.Forget(organization)
		s.invitations.Forget(organization)
		err = do()
	}
	return err
}
