// Command oidc is an OpenID provider for tests: the certified one of github.com/zitadel/oidc, with people and groups of
// a file. It keeps everything in memory, listens on loopback, and ends when its standard input does.
//
// Begin with package internal/oidctest, which starts it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// person can sign in, by the ID as name.
type person struct {
	Password      string   `json:"password"`
	Email         string   `json:"email"`
	EmailVerified bool     `json:"email_verified"`
	Groups        []string `json:"groups"`
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address on loopback")
	people := flag.String("people", "{}", "people by ID, as JSON")
	secret := flag.String("secret", "", "secret of the clients sluice and sluice-thin; the latter gets claims at userinfo only")
	flag.Parse()
	if err := serve(*listen, *people, *secret); err != nil {
		fmt.Fprintln(os.Stderr, "oidc:", err)
		os.Exit(1)
	}
}

// serve answers until standard input ends.
func serve(listen, people, secret string) error {
	known := make(map[string]person)
	if err := json.Unmarshal([]byte(people), &known); err != nil {
		return fmt.Errorf("-people: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", listen)
	if err != nil {
		return err
	}
	storage.RegisterClients(storage.WebClient("sluice", secret), storage.WebClient("sluice-thin", secret))
	kept := &keeper{Storage: storage.NewStorage(users(known)), people: known}
	issuer := "http://" + listener.Addr().String()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	server := &http.Server{Handler: exampleop.SetupServer(issuer, kept, logger, false), ReadHeaderTimeout: time.Minute}
	fmt.Println(issuer)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// users finds people for the provider.
type users map[string]person

func (u users) GetUserByID(id string) *storage.User {
	p, known := u[id]
	if !known {
		return nil
	}
	return &storage.User{ID: id, Username: id, Password: p.Password, FirstName: id, Email: p.Email, EmailVerified: p.EmailVerified}
}

func (u users) GetUserByUsername(name string) *storage.User { return u.GetUserByID(name) }

func (u users) ExampleClientID() string { return storage.ServiceUserID }

// keeper adds the groups of people to the provider's storage.
type keeper struct {
	*storage.Storage
	people map[string]person
}

// GetClientByClientID lets a client return to any port of loopback.
func (k *keeper) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	found, err := k.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	return client{found, id}, nil
}

// SetUserinfoFromRequest sets the claims of an ID token.
func (k *keeper) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, token op.IDTokenRequest, scopes []string) error {
	if err := k.Storage.SetUserinfoFromRequest(ctx, info, token, scopes); err != nil {
		return err
	}
	info.AppendClaims("groups", k.people[token.GetSubject()].Groups)
	return nil
}

// SetUserinfoFromToken sets the claims at the userinfo endpoint.
func (k *keeper) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, tokenID, subject, origin string) error {
	if err := k.Storage.SetUserinfoFromToken(ctx, info, tokenID, subject, origin); err != nil {
		return err
	}
	info.AppendClaims("groups", k.people[info.Subject].Groups)
	return nil
}

// client is a client of the provider.
type client struct {
	op.Client
	id string
}

func (c client) IDTokenUserinfoClaimsAssertion() bool { return c.id == "sluice" }

func (c client) RedirectURIGlobs() []string {
	return []string{"http*://127.0.0.1:*/login/callback", "http*://127.0.0.1:*/*/login/callback"}
}

func (c client) PostLogoutRedirectURIGlobs() []string { return nil }
