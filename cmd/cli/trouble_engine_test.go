package cli_test

import (
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/temporal"
	"github.com/sluice-queue/sluice/internal/temporaltest"
	"github.com/sluice-queue/sluice/presence"
)

// troublesOfEngines are troubles of Temporal, and of the processes that ask it.
func troublesOfEngines() []trouble {
	return []trouble{
		{
			sees: notStarted, cause: "Temporal is away", asks: "why", says: `the breaker is open: engine temporal: .*connection refused`, mend: "sluice engine check pay --temporal HOST:PORT", alert: "breaker-open", unready: "breaker", log: "connection refused",
			make: func(s *scene) sluice.ID {
				return s.pays(s.dial("127.0.0.1:1", temporal.Options{}), presence.ConditionEngineAway, nil)
			},
		},
		{
			sees: notStarted, cause: "the codec server is away", asks: "why", says: `the data converter failed: .*codec server: no route`, mend: "start the codec server", alert: "breaker-open", unready: "breaker", log: "codec server: no route",
			make: func(s *scene) sluice.ID {
				codec := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), absentCodec{})
				return s.pays(s.dial("127.0.0.1:1", temporal.Options{DataConverter: codec}), presence.ConditionCodec, nil)
			},
		},
		{
			sees: notStarted, cause: "the namespace is missing", needs: "temporal", asks: "doctor", says: `✖ engine +queue pay: runs can neither be started nor followed: engine temporal: .*Namespace nowhere is not found`, mend: "run_namespace=NAME", alert: "breaker-open", unready: "breaker", log: "Namespace nowhere is not found",
			make: func(s *scene) sluice.ID {
				return s.pays(s.dial(s.temporal(), temporal.Options{}), presence.ConditionEngineTarget, func(settings *sluice.Settings) { settings.RunNamespace = "nowhere" })
			},
		},
		{
			sees: notEnding, cause: "no worker polls the task queue", needs: "temporal", asks: "why", says: `it may not have begun: no worker polls task queue "nobody-`, mend: "run_task_queue=NAME", alert: "holders-with-conditions",
			make: func(s *scene) sluice.ID {
				engines := s.dial(s.temporal(), temporal.Options{})
				id := s.pays(engines, "", func(settings *sluice.Settings) {
					settings.RunTaskQueue = fmt.Sprintf("nobody-%d", time.Now().UnixNano())
				})
				s.becomes(id, func(j sluice.Job) bool { return j.State == sluice.StateDispatched })
				s.suffers(presence.RoleUpkeep, presence.ConditionNoPollers)
				return id
			},
		},
		{
			sees: notStarted, cause: "no dispatcher runs", asks: "why", says: `no dispatcher of it was seen in the last 30s`, mend: "sluice dispatch pay --temporal HOST:PORT", alert: "unserved",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				s.queue("pay", func(settings *sluice.Settings) { settings.Engine = "temporal" })
				return s.add("pay", 1, sluice.EnqueueOptions{})
			},
		},
		{
			sees: notStarted, cause: "the dispatcher was given another engine", asks: "holders", says: `queue pay names the engine eu, which this process was not given`, mend: "sluice dispatch pay --engine eu=temporal://HOST:PORT/NAMESPACE", alert: "holders-with-conditions unserved", unready: "breaker", log: "which this process was not given",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				s.queue("pay", func(settings *sluice.Settings) { settings.Engine = "eu" })
				s.dispatch(s.dial("127.0.0.1:1", temporal.Options{}), "pay")
				s.suffers(presence.RoleDispatcher, presence.ConditionUnknownEngine)
				return s.add("pay", 1, sluice.EnqueueOptions{})
			},
		},
		{
			sees: notEnding, cause: "nobody follows the runs", needs: "temporal", asks: "doctor", says: `nobody follows the runs at the engine temporal \(queues: pay\)`, mend: "sluice upkeep --temporal HOST:PORT", unready: "leaders", besides: "holders-with-conditions",
			make: func(s *scene) sluice.ID {
				engines := s.dial(s.temporal(), temporal.Options{})
				s.open()
				s.tend(nil)
				s.queue("pay", func(settings *sluice.Settings) {
					settings.Engine, settings.RunTaskQueue, settings.RunTimeout = "temporal", "unfollowed", time.Minute
				})
				s.dispatch(engines)
				id := s.add("pay", 1, sluice.EnqueueOptions{})
				s.becomes(id, func(j sluice.Job) bool { return j.State == sluice.StateDispatched })
				return id
			},
		},
	}
}

// absentCodec is the codec of a data converter whose codec server is down.
type absentCodec struct{}

func (absentCodec) Encode([]*commonpb.Payload) ([]*commonpb.Payload, error) {
	return nil, errors.New("codec server: no route")
}

func (absentCodec) Decode([]*commonpb.Payload) ([]*commonpb.Payload, error) {
	return nil, errors.New("codec server: no route")
}

// temporal returns the address of a real Temporal server, and tells doctor to ask it.
func (s *scene) temporal() string {
	s.Helper()
	s.engine = temporaltest.Address(s)
	return s.engine
}

func (s *scene) dial(address string, options temporal.Options) map[string]engine.Engine {
	s.Helper()
	options.Logger = s.logger
	options.Timeout = 2 * time.Second
	runner, err := temporal.Dial(temporal.Server{Address: address}, options)
	s.ok(err)
	s.Cleanup(func() { _ = runner.Close() })
	return map[string]engine.Engine{"temporal": runner}
}

// pays runs a dispatcher and an upkeep for a queue with an engine, until the dispatcher reports a condition.
func (s *scene) pays(engines map[string]engine.Engine, kind presence.ConditionKind, change func(*sluice.Settings)) sluice.ID {
	s.Helper()
	s.open()
	s.queue("pay", func(settings *sluice.Settings) {
		settings.Engine, settings.RunTaskQueue, settings.RunTimeout = "temporal", "pay", time.Minute
		if change != nil {
			change(settings)
		}
	})
	id := s.add("pay", 1, sluice.EnqueueOptions{})
	s.tend(engines)
	s.dispatch(engines)
	if kind != "" {
		s.suffers(presence.RoleDispatcher, kind)
	}
	return id
}
