package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/schema"
	"github.com/sluice-queue/sluice/upkeep"
)

// run answers at the doors, and works from the opening of the store until ctx ends.
func (s *server) run(ctx context.Context) error {
	return s.answer(ctx, func() error {
		store, err := s.open(ctx)
		if err != nil || store == nil {
			return err
		}
		defer s.app.close(store)
		if err := s.checkTokens(ctx, store); err != nil {
			return err
		}
		return s.work(ctx, store)
	})
}

// answer answers at the doors while do runs. The doors close last.
func (s *server) answer(ctx context.Context, do func() error) error {
	answering, closeDoors := context.WithCancel(context.WithoutCancel(ctx))
	var doors sync.WaitGroup
	defer doors.Wait()
	defer closeDoors()
	for _, d := range s.doors {
		doors.Go(func() {
			if err := api.ServeWith(answering, d.listener, renewing(d.site), d.options); err != nil {
				s.failed <- err
			}
		})
	}
	doors.Go(func() { s.keepAlive(answering) })
	return do()
}

// Pauses between attempts to open an unavailable store.
const (
	firstWait = time.Second
	maxWait   = 5 * time.Second
	// waitTold is how often the log repeats that the server waits.
	waitTold = time.Minute
)

// open opens the store, waiting for one that may still come. After an interrupt it returns nil without an error.
func (s *server) open(ctx context.Context) (sluice.Store, error) {
	wait, told, tellAgain := firstWait, "", time.Time{}
	for {
		store, err := s.app.openQuietly(ctx, s.at, s.app.db, s.app.migrate)
		switch {
		case err == nil:
			return store, nil
		case ctx.Err() != nil:
			return nil, nil //nolint:nilerr // it was told to end before there was anything to end
		case !mayCome(err):
			return nil, err
		}
		why := s.app.why(err)
		if why != told || time.Now().After(tellAgain) {
			s.log.Emit(event.StoreAwaited, "", "error", why)
			told, tellAgain = why, time.Now().Add(waitTold)
		}
		s.readiness.Watch(notOpenYet(errors.New("it is not there yet, and is waited for: " + why)))
		s.started("waits for the store: " + why)
		select {
		case <-ctx.Done():
			return nil, nil
		case err := <-s.failed:
			return nil, err
		case <-time.After(wait):
		}
		wait = min(2*wait, maxWait)
	}
}

// mayCome reports whether an unopened store may soon be available: its server is away, starting or too busy. Waiting
// mends no refused user, missing database or file.
func mayCome(err error) bool {
	var coded codedError
	var server *pgconn.PgError
	if errors.As(err, &coded) || errors.As(err, &server) && (strings.HasPrefix(server.Code, "28") || server.Code == "3D000") {
		return false
	}
	return errors.Is(err, sluice.ErrUnavailable)
}

func notOpenYet(why error) api.Check {
	return api.Check{Name: "store", Examine: func(context.Context) (string, error) { return "", why }}
}

// work runs what the flags ask for until ctx ends, then drains.
func (s *server) work(ctx context.Context, store sluice.Store) error {
	working, drain := context.WithCancel(context.WithoutCancel(ctx))
	defer drain()
	var parts sync.WaitGroup
	checks := []api.Check{api.StoreAnswers(store)}
	if schema, has := api.SchemaIsUpToDate(store); has {
		checks = append(checks, schema)
	}
	s.openAPI(store)
	if err := s.openConsole(); err != nil {
		return err
	}
	var does []string
	for _, part := range s.parts(store) {
		parts.Go(func() {
			if err := part.run(working); err != nil { // somebody told the process to stop
				select {
				case s.failed <- err:
				case <-working.Done():
				}
			}
		})
		checks = append(checks, part.checks...)
		does = append(does, part.name)
	}
	if len(s.engines) > 0 {
		checks = append(checks, s.told(api.EngineAnswers(store, s.engines)))
	}
	leaders := api.Led(store)
	leaders.Informative = true
	s.readiness.Watch(s.withoutPasswords(append(checks, leaders))...)
	s.started("runs " + strings.Join(append(does, "health", "metrics"), ", "))
	s.log.Emit(event.ServerStarted, "", "does", strings.Join(does, ", "))
	var err error
	select {
	case <-ctx.Done():
	case err = <-s.failed:
	}
	s.readiness.Drain()
	s.api.handler().Drain()
	s.console.handler().Drain()
	s.log.Emit(event.ServerDraining, "", "within", s.flags.grace)
	s.stopping()
	drain()
	parts.Wait()
	s.log.Emit(event.ServerStopped, "")
	return err
}

// part runs in a server until its context ends.
type part struct {
	name   string
	run    func(context.Context) error
	checks []api.Check
}

// parts are what the flags ask for.
func (s *server) parts(store sluice.Store) []part {
	all := slices.Clone(s.more)
	logger, limit, clean := s.app.logger(), s.app.log.limit, s.app.log.clean()
	if !s.flags.noUpkeep {
		u := upkeep.New(store, upkeep.Options{Version: s.app.version, Engines: s.engines, PayloadChecker: schema.New(), Receivers: s.receivers, Logger: logger, LogLimit: limit, Scrub: clean})
		all = append(all, part{"upkeep", u.Run, []api.Check{api.Beats("upkeep", u.Status)}})
	}
	if !s.flags.noDispatch && len(s.engines) > 0 {
		d := dispatcher.New(store, dispatcher.Options{Version: s.app.version, Engines: s.engines, Drain: s.flags.grace, Logger: logger, LogLimit: limit, Scrub: clean})
		all = append(all, part{"dispatch", d.Run, []api.Check{api.Beats("dispatch", d.Status), s.told(api.NoConditions("breaker", d.Status))}})
	}
	return all
}

// told makes an engine's check count only with --ready-needs-engine.
func (s *server) told(check api.Check) api.Check {
	check.Informative = !s.flags.needsEngine
	return check
}

// withoutPasswords makes checks show errors as the command line does.
func (s *server) withoutPasswords(checks []api.Check) []api.Check {
	for i := range checks {
		look := checks[i].Examine
		checks[i].Examine = func(ctx context.Context) (string, error) {
			what, err := look(ctx)
			if err != nil {
				err = errors.New(s.app.why(err))
			}
			return what, err
		}
	}
	return checks
}
