package upkeep_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/upkeep"
)

func TestProcessesOfAnotherProtocolAreLoggedOnce(t *testing.T) {
	inFarm(t, func(f *farm) {
		ctx, stop := context.WithCancel(f.Context())
		var log bytes.Buffer
		u := upkeep.New(f.store, upkeep.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		ended := make(chan error)
		go func() { ended <- u.Run(ctx) }()
		for range 30 {
			newer := presence.Holder{ID: "new:1:x", Role: presence.RoleWorker, Protocol: presence.Protocol + 1}
			silent := presence.Holder{ID: "sql:1:x", Role: presence.RoleWorker} // a holder without a protocol version
			for _, h := range []presence.Holder{newer, silent} {
				if _, err := presence.Given(f.store).Heartbeat(ctx, h); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(10 * time.Second)
		}
		holders, err := presence.Holders(ctx, f.store)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range holders {
			_, differs := h.Condition("", func(c presence.Condition) bool { return c.Kind == presence.ConditionProtocol })
			if differs != (h.Protocol > 0) {
				t.Errorf("%s of protocol %d: differs %t", h.ID, h.Protocol, differs)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "protocols differ"); n != 1 {
			t.Errorf("it is logged %d times:\n%s", n, log.String())
		}
	})
}
