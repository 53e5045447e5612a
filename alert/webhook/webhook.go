// Package webhook tells of alerts by POST, as JSON that may be signed.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
)

// What a webhook is sent beside the message.
const (
	// IDHeader tells the message from every other: one that comes twice has the same.
	IDHeader = "X-Sluice-Message"
	// SignatureHeader is t=SECONDS,v1=HEX: when it was sent, since 1970, and the HMAC-SHA256 of that, a full stop and the
	// body, by the secret. Only with a secret.
	SignatureHeader = "X-Sluice-Signature"
)

// Options adjust a webhook. The zero value works.
type Options struct {
	// Secret signs what is sent. It is never logged. Default: nothing is signed.
	Secret []byte
	// Timeout is how long a call may take. Default, and at the most, 10 s.
	Timeout time.Duration
}

// Webhook is an alert.Receiver. It follows no redirects, and calls nothing but its address.
type Webhook struct {
	name    string
	address string
	options Options
	client  *http.Client
}

// New makes a receiver of an address, which must be http or https. It does no calling itself. The address may hold a
// secret: it is not logged, and the receiver's name has only its host.
func New(address string, options Options) (*Webhook, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return nil, &sluice.InvalidError{Field: "webhook", Rule: "its address must begin with http:// or https:// and a host"}
	}
	if options.Timeout <= 0 || options.Timeout > alert.NotifyTimeout {
		options.Timeout = alert.NotifyTimeout
	}
	sum := sha256.Sum256([]byte(address))
	return &Webhook{
		name: "webhook " + parsed.Host + " " + hex.EncodeToString(sum[:4]), address: address, options: options,
		client: &http.Client{
			Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ResponseHeaderTimeout: options.Timeout},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Name is the host, and what tells its addresses apart.
func (h *Webhook) Name() string { return h.name }

// Notify sends a message. Any answer but 2xx is a RefusedError.
func (h *Webhook) Notify(ctx context.Context, message alert.Message) error {
	ctx, cancel := context.WithTimeout(ctx, h.options.Timeout)
	defer cancel()
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.address, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address of the webhook cannot be used")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "sluice")
	request.Header.Set(IDHeader, message.ID.String())
	if len(h.options.Secret) > 0 {
		request.Header.Set(SignatureHeader, sign(h.options.Secret, time.Now(), body))
	}
	response, err := h.client.Do(request)
	var outer *url.Error
	if errors.As(err, &outer) {
		return fmt.Errorf("not reached: %w", outer.Err) // the outer one names the address
	}
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10)
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return &alert.RefusedError{Answer: "HTTP " + strconv.Itoa(response.StatusCode) + " " + http.StatusText(response.StatusCode)}
	}
	return nil
}

func sign(secret []byte, at time.Time, body []byte) string {
	seconds := strconv.FormatInt(at.Unix(), 10)
	return "t=" + seconds + ",v1=" + hex.EncodeToString(digest(secret, seconds, body))
}

func digest(secret []byte, seconds string, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(seconds + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// Verify says, in a receiver, whether a body was signed with the secret, within the last while: so that what somebody has
// listened to cannot be sent again later. The header is that of SignatureHeader.
func Verify(secret []byte, header string, body []byte, now time.Time, while time.Duration) error {
	seconds, signature, found := strings.Cut(strings.TrimPrefix(header, "t="), ",v1=")
	at, err := strconv.ParseInt(seconds, 10, 64)
	sent, hexErr := hex.DecodeString(signature)
	switch {
	case !found || err != nil || hexErr != nil:
		return errors.New("the signature is not t=SECONDS,v1=HEX")
	case !hmac.Equal(sent, digest(secret, seconds, body)):
		return errors.New("the signature is not that of the body and the secret")
	case now.Sub(time.Unix(at, 0)).Abs() > while:
		return fmt.Errorf("it was signed at %s, not within %s of now", time.Unix(at, 0).UTC().Format(time.RFC3339), while)
	}
	return nil
}
