package httpapi

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/internal/wire"
)

// tokens adds the routes of tokens.
func (a *API) tokens() {
	add(a, Route{
		Method: "GET", Path: "/tokens", Name: "list-tokens", Group: "tokens", Summary: "list tokens",
		Needs: access.Administer, Commands: []string{"tokens ls"}, noun: "token",
	}, func(ctx context.Context, c *call, in *PageInput) (wire.TokenList, error) {
		found, err := access.Tokens(ctx, c.api.store, in.After, in.Limit)
		return wire.TokenList{Tokens: orEmpty(found)}, err
	})
	add(a, Route{
		Method: "POST", Path: "/tokens", Name: "create-token", Group: "tokens", Summary: "create a token",
		Text:  "The answer has the secret, which nobody can read again.",
		Needs: access.Administer, Commands: []string{"tokens create"}, noun: "token", status: 201,
	}, func(ctx context.Context, c *call, in *tokenInput) (wire.NewToken, error) {
		b := in.Body
		token, secret, err := access.Create(ctx, c.api.store, access.Token{Name: b.Name, Role: b.Role, Bounds: access.Bounds{Queues: b.Queues, Tenants: b.Tenants}, ExpiresAt: b.ExpiresAt}, c.act(b.Reason))
		return wire.NewToken{Token: token, Secret: secret}, err
	})
	add(a, Route{
		Method: "POST", Path: "/tokens/{name}/rotate", Name: "rotate-token", Group: "tokens", Summary: "rotate a token",
		Text:  "Gives the token a new secret. The old one works for the overlap longer.",
		Needs: access.Administer, Commands: []string{"tokens rotate"}, noun: "token",
	}, func(ctx context.Context, c *call, in *rotateInput) (wire.NewToken, error) {
		overlap := time.Duration(0)
		if in.Body.Overlap != "" {
			var err error
			if overlap, err = sluice.ParseDuration(in.Body.Overlap); err != nil {
				return wire.NewToken{}, &sluice.InvalidError{Field: "overlap", Rule: "must be a duration such as 1h"}
			}
		}
		token, secret, err := access.Rotate(ctx, c.api.store, in.Name, overlap, c.act(in.Body.Reason))
		return wire.NewToken{Token: token, Secret: secret}, err
	})
	add(a, Route{
		Method: "DELETE", Path: "/tokens/{name}", Name: "revoke-token", Group: "tokens", Summary: "revoke a token",
		Needs: access.Administer, Commands: []string{"tokens revoke"}, noun: "token",
	}, func(ctx context.Context, c *call, in *revokeInput) (done, error) {
		return done{true}, access.Revoke(ctx, c.api.store, in.Name, c.act(in.Reason))
	})
}

// PageInput chooses a page of a list that is sorted by name.
type PageInput struct {
	After string `query:"after" doc:"the last name of the page before" maxLength:"200"`
	Limit int    `query:"limit" doc:"the most items" minimum:"1" maximum:"10000" default:"100"`
}

// tokenInput creates a token.
type tokenInput struct{ Body wire.TokenBody }

// rotateInput rotates a token.
type rotateInput struct {
	Name string `path:"name" doc:"the token" maxLength:"64"`
	Body wire.RotateBody
}

// revokeInput revokes a token.
type revokeInput struct {
	Name   string `path:"name" doc:"the token" maxLength:"64"`
	Reason string `query:"reason" doc:"why, for the audit" maxLength:"1000"`
}

// done is the answer to a request that only does something.
type done struct {
	// Done is true.
	Done bool `json:"done"`
}
