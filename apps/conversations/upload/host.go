package upload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// ErrNotApproved says that a job names a node that this worker may not speak to.
var ErrNotApproved = errors.New("the endpoint is not approved")

// Approved are the hosts, with their ports, that a worker may speak to.
type Approved []string

// Approve makes the list from URLs.
func Approve(endpoints ...string) (Approved, error) {
	var hosts Approved
	for _, endpoint := range endpoints {
		host, err := hostOf(endpoint)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, host)
	}
	return hosts, nil
}

func hostOf(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return "", errors.New("an endpoint is a URL of http or https with a host, and without a user")
	}
	if u.Port() != "" {
		return u.Host, nil
	}
	return net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme]), nil
}

// Check says whether an endpoint is approved.
func (a Approved) Check(endpoint string) error {
	host, err := hostOf(endpoint)
	if err != nil {
		return err
	}
	if !slices.Contains(a, host) {
		return fmt.Errorf("%w: %s", ErrNotApproved, host)
	}
	return nil
}

// requestTimeout bounds one request.
const requestTimeout = 30 * time.Second

// Client makes requests to approved hosts alone: whatever a library or an answer wants, nothing else is dialed. It follows
// no redirects and asks no proxy.
func (a Approved) Client() *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	return &http.Client{
		Timeout: requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 10, IdleConnTimeout: time.Minute,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if !slices.Contains(a, address) {
					return nil, fmt.Errorf("%w: %s", ErrNotApproved, address)
				}
				return dialer.DialContext(ctx, network, address)
			},
		},
	}
}
