package httpapi

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/api"
)

// local is everybody, on loopback without a login.
var local = access.Caller{Name: "local", Role: access.RoleAdmin}

// identify names the caller of a request.
func (a *API) identify(r *http.Request) (access.Caller, error) {
	switch {
	case a.options.NoLogin:
		return local, notLocal(r)
	case a.options.Identify != nil:
		return known(a.options.Identify(r))
	}
	secret, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !is {
		return access.Caller{}, unauthorized("the request has no token")
	}
	return known(a.gate.Caller(access.WithSender(r.Context(), r.RemoteAddr), strings.TrimSpace(secret)))
}

// still finds out again who sends a request that lasts. The error says why the caller may not go on: the token has ended, or has
// other rights now. It costs the store nothing while the gate remembers the token.
func (c *call) still() error {
	caller, err := c.api.identify(c.request)
	if err == nil && !reflect.DeepEqual(caller, c.caller) {
		return problemOf(http.StatusForbidden, "forbidden", "the role or the bounds of the caller have changed", "send it again")
	}
	return err
}

// refused reports whether the caller may not go on. A store that does not answer refuses nobody.
func (c *call) refused() (p *Problem, is bool) {
	is = errors.As(c.still(), &p)
	return p, is
}

// known makes a problem of the reason why a caller is not known.
func known(caller access.Caller, err error) (access.Caller, error) {
	switch {
	case errors.Is(err, access.ErrUnknown):
		return caller, unauthorized(err.Error())
	case errors.Is(err, access.ErrTooMany):
		return caller, problemOf(http.StatusTooManyRequests, "too_many_unknown", "too many unknown tokens were sent", "send it again").after(time.Second)
	}
	return caller, err
}

// notLocal refuses what may not come from this machine's people: a request under another name, which a page of a foreign site
// can send once that site's name leads here, and one that a proxy on this machine sends on.
func notLocal(r *http.Request) error {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if r.Header.Get(name) != "" {
			return problemOf(http.StatusForbidden, "behind_proxy", "the request came through a proxy, and the server asks nobody for a token", "start the server with --behind-proxy")
		}
	}
	if !api.MadeTo(r, api.LoopbackHosts()) {
		return problemOf(http.StatusMisdirectedRequest, "other_name", "the server asks nobody for a token, and was called by a name that is not of loopback", "call it localhost or 127.0.0.1; to answer others, let it ask for tokens: --login or --behind-proxy")
	}
	return nil
}

// unauthorized refuses a request whose sender is not known.
func unauthorized(why string) *Problem {
	return problemOf(http.StatusUnauthorized, "unauthorized", why, "send the header `Authorization: Bearer TOKEN`; `sluice tokens create` makes a token")
}
