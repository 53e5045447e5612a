package signin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
)

// Provider is an OpenID provider that signs people in.
type Provider struct {
	// Issuer is the provider's address, such as https://id.example.com/realms/staff. Required.
	Issuer string `yaml:"issuer"`
	// ClientID names this server at the provider, and ClientSecret proves it. Without a secret it is a public client.
	ClientID     string `yaml:"client_id"`
	ClientSecret string `yaml:"-"`
	// Name names the provider on the page. Default: the host of the issuer.
	Name string `yaml:"name"`
	// Scopes are asked for beside openid, email, profile, and groups if the provider knows it. Default: none.
	Scopes []string `yaml:"scopes"`
	// GroupsClaim is the claim that lists a person's groups. Default: groups.
	GroupsClaim string `yaml:"groups_claim"`
	// Roles say who may do what. The first that fits a person counts. Nobody else may sign in.
	Roles []Grant `yaml:"roles"`
}

// Grant gives a role to the people of a group, or with an address. One of both is set.
type Grant struct {
	// Group is the name of a group at the provider.
	Group string `yaml:"group"`
	// Email is an address that the provider has verified, or *@ and a domain.
	Email string `yaml:"email"`
	// Role names the rights, and Queues and Tenants bound them as for a token.
	Role    access.Role `yaml:"role"`
	Queues  []string    `yaml:"queues"`
	Tenants []string    `yaml:"tenants"`
}

// ReadProvider reads a provider from a YAML file. Its field client_secret_file names another file, beside it.
func ReadProvider(path string) (Provider, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Provider{}, err
	}
	var read struct {
		Provider   `yaml:",inline"`
		SecretFile string `yaml:"client_secret_file"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&read); err != nil && !errors.Is(err, io.EOF) {
		return Provider{}, fmt.Errorf("%s: %w", path, err)
	}
	if read.SecretFile != "" {
		file := read.SecretFile
		if !filepath.IsAbs(file) {
			file = filepath.Join(filepath.Dir(path), file)
		}
		secret, err := os.ReadFile(file)
		if err != nil {
			return Provider{}, fmt.Errorf("%s: client_secret_file: %w", path, err)
		}
		read.ClientSecret = strings.TrimSpace(string(secret))
	}
	if err := read.Check(); err != nil {
		return Provider{}, fmt.Errorf("%s: %w", path, err)
	}
	return read.Provider, nil
}

// Check returns the rule that the provider breaks.
func (p Provider) Check() error {
	at, err := url.Parse(p.Issuer)
	switch {
	case p.Issuer == "":
		return errors.New("issuer: must be set")
	case err != nil || at.Host == "" || at.Scheme != "https" && (at.Scheme != "http" || !onLoopback(at.Hostname())):
		return fmt.Errorf("issuer: %.100q must be an address that begins with https://", p.Issuer)
	case p.ClientID == "":
		return errors.New("client_id: must be set")
	case len(p.Roles) == 0:
		return errors.New("roles: must have an entry, or nobody can sign in")
	}
	for i, grant := range p.Roles {
		if err := grant.check(); err != nil {
			return fmt.Errorf("roles[%d]: %w", i, err)
		}
	}
	return nil
}

// onLoopback reports whether a host is this machine.
func onLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (g Grant) check() error {
	if (g.Group == "") == (g.Email == "") {
		return errors.New("must have either group or email")
	}
	if strings.Contains(strings.TrimPrefix(g.Email, "*@"), "*") {
		return fmt.Errorf("email: %.60q must be an address, or *@ and a domain", g.Email)
	}
	if err := g.Role.Check(); err != nil {
		return err
	}
	return access.Bounds{Queues: g.Queues, Tenants: g.Tenants}.Check()
}

// person is somebody whom a provider has named.
type person struct {
	// Subject is the person's ID at the provider.
	Subject string `json:"subject,omitempty"`
	// Email is an address that the provider has verified.
	Email string `json:"email,omitempty"`
	// Groups are those that have roles here.
	Groups []string `json:"groups,omitempty"`
}

// name returns the person's name in the audit.
func (p person) name() string {
	if p.Email != "" && len(p.Email) <= maxName && !strings.ContainsAny(p.Email, " \t\r\n") && sluice.StoredText(p.Email) == p.Email {
		return p.Email
	}
	name := sluice.StoredText("subject " + p.Subject)
	if len(name) > maxName {
		name = sluice.StoredText(name[:maxName])
	}
	return name
}

// maxName is the longest name in the audit that a person may have, in bytes.
const maxName = 200

// fits reports whether a grant is for a person.
func (g Grant) fits(p person) bool {
	if g.Group != "" {
		return slices.Contains(p.Groups, g.Group)
	}
	if domain, is := strings.CutPrefix(g.Email, "*@"); is {
		_, of, has := strings.Cut(p.Email, "@")
		return has && strings.EqualFold(of, domain)
	}
	return p.Email != "" && strings.EqualFold(g.Email, p.Email)
}

// callerOf returns what a person may do, by the first role that fits. False: nothing.
func (p *Provider) callerOf(who person) (access.Caller, bool) {
	for _, grant := range p.Roles {
		if grant.fits(who) {
			return access.Caller{Name: who.name(), Role: grant.Role, Bounds: access.Bounds{Queues: grant.Queues, Tenants: grant.Tenants}}, true
		}
	}
	return access.Caller{}, false
}

// mentions keeps those of a person's groups that have roles. Others would only make the session long.
func (p *Provider) mentions(groups []string) []string {
	var kept []string
	for _, grant := range p.Roles {
		if grant.Group != "" && slices.Contains(groups, grant.Group) && !slices.Contains(kept, grant.Group) {
			kept = append(kept, grant.Group)
		}
	}
	return kept
}

// title names the provider on the page.
func (p *Provider) title() string {
	if p.Name != "" {
		return p.Name
	}
	at, err := url.Parse(p.Issuer)
	if err != nil {
		return p.Issuer
	}
	return at.Host
}
