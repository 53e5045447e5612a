package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	uiserver "github.com/temporalio/ui-server/v2/server"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	uioptions "github.com/temporalio/ui-server/v2/server/server_options"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/temporal"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// starting is how long the server may take until it takes work; a busy machine needed 11 s.
const starting = 2 * time.Minute

// server is a running Temporal server.
type server struct {
	address string
	ui      string

	temporal temporal.Server
	web      *uiserver.Server
}

// start makes the store ready, starts the services and the UI, and waits until work is taken.
func start(opts options) (*server, error) {
	logger := newLogger(opts.log)
	stores, err := prepareStore(opts.store, opts.namespaces, logger)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", redacted(opts.store), err)
	}
	ports, err := choosePorts(opts.port)
	if err != nil {
		return nil, err
	}
	s := &server{address: ports.frontend()}
	s.temporal, err = temporal.NewServer(
		temporal.WithConfig(serverConfig(stores, ports)),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(ports.hosts()),
		temporal.WithDynamicConfigClient(opts.dynamicClient()),
		temporal.WithLogger(logger),
	)
	if err != nil {
		return nil, err
	}
	if err := s.temporal.Start(); err != nil {
		return nil, err
	}
	if opts.uiPort != 0 {
		if err := s.startUI(opts); err != nil {
			return nil, err
		}
	}
	return s, s.waitUntilReady(opts.namespaces)
}

// newLogger logs to standard error, without the stack that Temporal adds to each error.
func newLogger(level string) log.Logger {
	built := log.BuildZapLogger(log.Config{Level: level, Format: "console"})
	return log.NewZapLogger(built.WithOptions(zap.AddStacktrace(zap.FatalLevel)))
}

// startUI starts the web UI, on loopback as all else, and lets it ask nobody for news.
func (s *server) startUI(opts options) error {
	host := fmt.Sprintf("%s:%d", loopback, opts.uiPort)
	// The UI ends the process without a reason when the port is taken, so the port is tried first.
	listener, err := net.Listen("tcp", host)
	if err != nil {
		return fmt.Errorf("web UI: %w", err)
	}
	if err := listener.Close(); err != nil {
		return err
	}
	s.web = uiserver.NewServer(uioptions.WithConfigProvider(&uiconfig.Config{
		TemporalGRPCAddress: s.address,
		Host:                loopback,
		Port:                opts.uiPort,
		EnableUI:            true,
		DefaultNamespace:    opts.namespaces[0].name,
		DisableNewsFetch:    true,
		HideLogs:            true,
		CORS:                uiconfig.CORS{CookieInsecure: true},
	}))
	s.ui = "http://" + host
	go func() { _ = s.web.Start() }()
	return nil
}

// waitUntilReady returns when each namespace can be asked about a workflow, which takes the frontend
// and the history service, and when the UI listens.
func (s *server) waitUntilReady(namespaces []namespace) error {
	ctx, cancel := context.WithTimeout(context.Background(), starting)
	defer cancel()
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	service := workflowservice.NewWorkflowServiceClient(conn)
	for _, ns := range namespaces {
		err := retry(ctx, func() error { return answers(ctx, service, ns.name) })
		if err != nil {
			return fmt.Errorf("namespace %s does not answer: %w", ns.name, err)
		}
	}
	if s.web == nil {
		return nil
	}
	return retry(ctx, func() error {
		conn, err := net.Dial("tcp", s.ui[len("http://"):])
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// answers asks for a workflow that does not exist.
func answers(ctx context.Context, service workflowservice.WorkflowServiceClient, namespace string) error {
	_, err := service.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: namespace,
		Execution: &commonpb.WorkflowExecution{WorkflowId: "temporal-is-ready"},
	})
	if status.Code(err) == codes.NotFound && !namespaceIsMissing(err) {
		return nil
	}
	return err
}

// namespaceIsMissing says that it is the namespace, not the workflow, that was not found.
func namespaceIsMissing(err error) bool {
	var missing *serviceerror.NamespaceNotFound
	return errors.As(serviceerror.FromStatus(status.Convert(err)), &missing)
}

// retry tries until it succeeds or the context ends, and then gives the last reason.
func retry(ctx context.Context, try func() error) error {
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-pause.C:
		}
	}
}

// stop ends the UI and the services.
func (s *server) stop() error {
	if s.web != nil {
		s.web.Stop()
	}
	return s.temporal.Stop()
}
