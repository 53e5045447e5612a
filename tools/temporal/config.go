package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"
)

const (
	// loopback is the only address that anything here listens on.
	loopback = "127.0.0.1"
	// clusterName is that of Temporal's development server.
	clusterName = "active"
)

// ports are those of the services.
type ports map[primitives.ServiceName]int

// choosePorts gives each service a port: the frontend the one asked for, the others free ones.
func choosePorts(frontend int) (ports, error) {
	chosen := ports{}
	for _, service := range []primitives.ServiceName{
		primitives.FrontendService, primitives.HistoryService, primitives.MatchingService, primitives.WorkerService,
	} {
		wanted := 0
		if service == primitives.FrontendService {
			wanted = frontend
		}
		listener, err := listen(wanted)
		if err != nil {
			return nil, fmt.Errorf("port of the %s: %w", service, err)
		}
		// All are held until all are chosen, so that no two services get the same.
		defer func() { _ = listener.Close() }()
		tcp, ok := listener.Addr().(*net.TCPAddr)
		if !ok {
			return nil, errors.New("a listener without a port")
		}
		chosen[service] = tcp.Port
	}
	return chosen, nil
}

// listen takes a port of loopback. 0: any below those that the system gives to whoever does not name one,
// which could be taken again between here and the service's own start.
func listen(port int) (net.Listener, error) {
	if port != 0 {
		return net.Listen("tcp", fmt.Sprintf("%s:%d", loopback, port))
	}
	for {
		listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", loopback, 20000+rand.IntN(12000)))
		if !errors.Is(err, syscall.EADDRINUSE) {
			return listener, err
		}
	}
}

func (p ports) frontend() string { return p.of(primitives.FrontendService) }

func (p ports) of(service primitives.ServiceName) string {
	return fmt.Sprintf("%s:%d", loopback, p[service])
}

// hosts tells the services where the others are, in place of a membership protocol.
func (p ports) hosts() map[primitives.ServiceName]static.Hosts {
	hosts := map[primitives.ServiceName]static.Hosts{}
	for service := range p {
		hosts[service] = static.SingleLocalHost(p.of(service))
	}
	return hosts
}

// serverConfig is Temporal's configuration: one cluster, no archive, no access control.
func serverConfig(stores config.Persistence, p ports) *config.Config {
	services := map[string]config.Service{}
	for service, port := range p {
		services[string(service)] = config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: loopback}}
	}
	return &config.Config{
		Persistence: stores,
		Services:    services,
		Global: config.Global{
			Membership: config.Membership{BroadcastAddress: loopback},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: p.frontend()},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		PublicClient:        config.PublicClient{HostPort: p.frontend()},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: "disabled"},
			Visibility: config.VisibilityArchival{State: "disabled"},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
		}},
	}
}
