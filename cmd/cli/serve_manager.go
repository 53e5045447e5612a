package cli

import (
	"context"
	"crypto/tls"
	"net/http"
	"sync"
	"time"

	"github.com/sluice-queue/sluice/cmd/internal/systemd"
	"github.com/sluice-queue/sluice/internal/event"
)

// managed reports to systemd, if it started the server.
type managed struct {
	manager *systemd.Manager
	once    sync.Once
}

func (s *server) findManager() error {
	manager, err := systemd.FromEnvironment()
	s.manager.manager = manager
	return err
}

func (s *server) leaveManager() { _ = s.manager.manager.Close() }

func (s *server) tell(lines ...string) {
	if err := s.manager.manager.Notify(lines...); err != nil {
		s.log.Emit(event.ManagerNotNotified, "", "error", err)
	}
}

// started reports the start and a status to systemd, at the latest while waiting for the store. So no machine delays
// another's start, but a refused password still fails the start.
func (s *server) started(status string) {
	s.manager.once.Do(func() { s.tell(systemd.Ready) })
	s.tell(systemd.Status(status))
}

func (s *server) stopping() { s.tell(systemd.Stopping, systemd.Status("drains")) }

// keepAlive tells systemd's watchdog that the server answers, while it does.
func (s *server) keepAlive(ctx context.Context) {
	every := systemd.WatchdogInterval() / 2
	if s.manager.manager == nil || every <= 0 {
		return
	}
	scheme := "http://"
	if s.doors[0].options.TLS != nil {
		scheme = "https://"
	}
	address := scheme + s.doors[0].listener.Addr().String() + s.doors[0].site.Base() + "/healthz"
	client := &http.Client{Timeout: every, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the server asks itself
	}}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := answers(ctx, client, address); err == nil {
			s.tell(systemd.Watchdog)
		} else if ctx.Err() == nil {
			s.log.Emit(event.ServerMute, "", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func answers(ctx context.Context, client *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Host = "localhost"
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
