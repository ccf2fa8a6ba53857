# Topsail. `make help` lists the targets.

BIN      := bin/topsail
LIB       = bin/libtopsail.$(if $(filter darwin,$(shell go env GOOS)),dylib,so)
PYTHON   ?= python3
PACKAGES := build/python
DEMO_ENV := build/venv-demo
TEST_ENV := build/venv-test
DEMO     := examples/demo
UI       := web/ui
MODELS   := build/demo-models
DATA_DIR ?= build/demo-data
TOOLS    := go tool -modfile=internal/tools/go.mod
PROMTOOL := go tool -modfile=$(CURDIR)/internal/tools/promtool.mod promtool
SERVERS  := build/servers
SMOKE_SERVERS := $(addprefix $(SERVERS)/,consul nomad influxd kafka)
PMML     := build/jvm/topsail-pmml.jar
MAVEN    := TZ=UTC mvn --batch-mode --quiet --no-transfer-progress --strict-checksums --file containers/jvm/pom.xml
FUZZTIME ?= 20s
BENCH    ?= all
OFFSET   ?= 0
OUTAGE   ?= 20s

# Compiled code is the same in any folder, so that a fresh clone finds it in Go's cache. The tags are the circles of test/arch.
export GOFLAGS ?= -trimpath
export TAGS    := smoke,servers,system,bars,faults,edge

.PHONY: help build lib ui pmml run wine wine-kafka servers cluster cluster-down test gate smoke check quick bars test-race test-random test-servers test-system test-ui-full test-ui test-go test-python test-jvm test-image test-deployers test-runtimes test-frameworks test-api test-clients test-demo test-rules faults test-faults test-edge bench figures selection fuzz generate pack lint fmt fix clean clean-cache FORCE

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

build: ui ## build bin/topsail, with the web UI where there is Node
	go build -o $(BIN) ./cmd/topsail

lib: build ## build bin/libtopsail, the library with the gateway and its models for C and what calls C, and bin/topsail.h; it needs a C compiler
	CGO_ENABLED=1 go build -buildmode=c-shared -o $(LIB) ./cmd/libtopsail
	@rm -f bin/libtopsail.h && cp cmd/libtopsail/topsail.h bin/

ui: ## build the web UI, which the program then carries
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory $(UI)/dist/index.html; \
	else echo "there is no npm: building without the web UI; it needs Node 20 or later"; fi

$(UI)/dist/index.html: $(UI)/package-lock.json $(shell git ls-files web/api/openapi.yaml web/ui/src web/ui/index.html web/ui/*.ts web/ui/*.js web/ui/*.mjs) | $(UI)/node_modules
	@echo "building the web UI"
	@cd $(UI) && npm run --silent build -- --logLevel warn

$(UI)/node_modules: build/node FORCE
	@[ "$$(readlink $@)" = ../../$</node_modules ] || { rm -rf $@ && ln -s ../../$</node_modules $@; }

pmml: $(PMML) ## build bin/topsail-pmml.jar, which evaluates PMML models in Java
	@mkdir -p bin && cp $(PMML) bin/

$(PMML): scripts/need-java $(shell find containers/jvm/pom.xml containers/jvm/src/main -type f)
	@scripts/need-java
	@echo "building topsail-pmml.jar"
	@$(MAVEN) package -Dmaven.test.skip=true
	@touch $@

run: build $(DEMO_ENV)/made ## serve two demo models on this machine
	@$(DEMO_ENV)/bin/python $(DEMO)/train.py $(MODELS)
	@PATH="$(CURDIR)/$(DEMO_ENV)/bin:$$PATH" DEMO_MODELS="$(CURDIR)/$(MODELS)" \
		$(BIN) local --config $(DEMO)/topsail.toml --data-dir $(DATA_DIR) $(RUN_FLAGS)

wine: build $(PACKAGES)/wine ## run the example of wines on Redis: models of TensorFlow come as messages while wines do; WINE='--seconds 30' and more
	@scripts/need-redis
	@PATH="$(CURDIR)/bin:$$PATH" $(PACKAGES)/wine/bin/python examples/wine/run.py $(WINE)

wine-kafka: build pmml $(PACKAGES)/wine $(SERVERS)/kafka ## the same on Kafka, with models in PMML beside them
	@PATH="$(CURDIR)/bin:$$PATH" $(PACKAGES)/wine/bin/python examples/wine/run.py --broker kafka --jars $(SERVERS)/kafka --models tensorflow,pmml $(WINE)

servers: $(addprefix $(SERVERS)/,consul nomad plugins influxd influxd2 versitygw kafka registry) ## build Consul, Nomad, InfluxDB, VersityGW, Kafka and a schema registry for tests and clusters, and find Redis
	@scripts/need-redis

cluster: build servers $(DEMO_ENV)/made ## run Consul, Nomad, Redis, InfluxDB and Topsail on them; OFFSET=10000 moves all ports
	@$(DEMO_ENV)/bin/python $(DEMO)/train.py $(MODELS)
	@PATH="$(CURDIR)/$(DEMO_ENV)/bin:$$PATH" DEMO_MODELS="$(CURDIR)/$(MODELS)" go run ./test/devcluster up -offset $(OFFSET)

cluster-down: ## stop the cluster and leave nothing behind
	@go run ./test/devcluster down -offset $(OFFSET)

# The circles of tests: `make gate` is what every change must pass; CONTRIBUTING.md says when to run which of the others.
TESTS := lint test-go test-python test-ui test-jvm test-demo

test: ## run the tests of the gate that need no built servers; nothing in them measures a clock
	@scripts/steps $(TESTS)

# The servers of the smoke are built where the cache has them not, while the tests leave processors idle.
gate: ## run what every change must pass: the tests, and the smoke
	@mkdir -p build && { nice -n 19 $(MAKE) --no-print-directory $(SMOKE_SERVERS) > build/servers.log 2>&1 & }; scripts/steps $(TESTS) smoke

smoke: build $(SMOKE_SERVERS) ## walk through one real cluster, and a stream of Kafka
	@scripts/need-redis
	@scripts/test-circle smoke -timeout 8m

check: ## run everything, go on after a failure, and write a table into build/check
	@scripts/steps -k $(TESTS) smoke test-race test-random test-servers test-system bars \
		faults test-edge test-api test-clients test-ui-full test-runtimes test-deployers test-rules test-image

quick: ui $(TEST_ENV)/made ## check what changed since the last commit on main, and test the Go packages it reaches
	@scripts/quick

test-go: build $(TEST_ENV)/made $(PMML)
	@scripts/need-redis
	@PATH="$(CURDIR)/$(TEST_ENV)/bin:$$PATH" scripts/test-go

test-ui: build ## check the web UI, and walk through it with Chromium
	@scripts/need-chromium
	cd $(UI) && npm run --silent check && npm test --silent && npm run --silent e2e
	scripts/test-ui

test-ui-full: build $(TEST_ENV)/made ## drive all of the web UI with Chromium, and take pictures of it
	@scripts/need-chromium
	cd $(UI) && npm run --silent e2e-full
	PATH="$(CURDIR)/$(TEST_ENV)/bin:$$PATH" scripts/test-ui full

test-random: build $(TEST_ENV)/made $(PMML) ## test properties with new random cases, twenty times as many
	@scripts/need-redis
	@PATH="$(CURDIR)/$(TEST_ENV)/bin:$$PATH" scripts/test-random

test-race: build $(TEST_ENV)/made $(PMML) ## test all Go packages of the gate under the race detector
	@PATH="$(CURDIR)/$(TEST_ENV)/bin:$$PATH" RACE=all TIMEOUT=20m scripts/test-go

test-servers: build servers $(TEST_ENV)/made $(PMML) ## test adapters and jobs against their real servers, also killed, frozen and with TLS
	@PATH="$(CURDIR)/$(TEST_ENV)/bin:$$PATH" scripts/test-circle servers -race

test-system: build servers $(TEST_ENV)/made build/venv-clipper/made $(PMML) ## test whole programs and clusters, with models in Python and Java and Clipper's own client
	@PATH="$(CURDIR)/$(TEST_ENV)/bin:$$PATH" scripts/test-circle system

bars: build servers $(TEST_ENV)/made ## measure what has a bar: rates, ratios and percentiles; on an idle machine
	@PATH="$(CURDIR)/$(TEST_ENV)/bin:$$PATH" scripts/test-circle bars
	cd containers/python && ../../$(TEST_ENV)/bin/python -m pytest -q -m bars
	cd $(UI) && npm run --silent e2e-speed

faults: servers ## break a real cluster under load, servers being away for OUTAGE
	@scripts/test-circle faults -v -args -outage $(OUTAGE)

test-faults: ## the same with servers away for a minute
	@$(MAKE) faults OUTAGE=60s

test-edge: ## attack a real Topsail as a client without a key could, beside a steady one
	@scripts/test-circle edge -v

test-python: $(TEST_ENV)/made ## check the Python package's form and types, and test it
	cd containers/python && ../../$(PACKAGES)/test/bin/ruff check -q src tests tools && ../../$(PACKAGES)/test/bin/ruff format -q --check src tests tools && ../../$(PACKAGES)/test/bin/mypy
	cd containers/python && ../../$(TEST_ENV)/bin/python -m pytest -q -n 2

figures: build servers ## measure a cluster: from zero, steps, rollouts, changes, many versions
	go run ./bench/reports

test-image: ## build the image of deploy/image with buildah, as root, and serve a bundle in it
	@scripts/test-image

test-jvm: ## test the container in Java and the evaluator of PMML models
	@scripts/need-java
	$(MAVEN) test
	@cat build/jvm/maven/surefire-reports/*.txt | grep '^Tests run'

test-deployers: $(PACKAGES)/spark ## deploy real models of R and PySpark; PySpark is 450 MB
	@scripts/need-java
	@scripts/need-r
	cd containers/python && ../../$(PACKAGES)/spark/bin/python -m pytest -q tests/heavy/test_r.py tests/heavy/test_*pyspark.py

test-runtimes: $(PACKAGES)/runtimes ## deploy real models of ONNX, XGBoost and LightGBM, pipelines with pandas, every estimator of scikit-learn, and with Clipper's deployer of ONNX
	cd containers/python && ../../$(PACKAGES)/runtimes/bin/python -W ignore -m pytest -q tests/heavy/test_onnx.py tests/heavy/test_pandas.py tests/heavy/test_trees.py tests/heavy/test_clipper_onnx.py tests/heavy/test_estimators.py

test-clients: build $(TEST_ENV)/made $(PACKAGES)/models $(PACKAGES)/kserve $(PACKAGES)/mlserver $(PACKAGES)/perf $(PACKAGES)/engine $(PACKAGES)/triton ## ask models of scikit-learn and ONNX, a chat and a llama.cpp as clients of KServe, MLServer, Triton and OpenAI do, measure with perf_analyzer, and call servers of KServe, MLServer and Triton as services; they are 2 GB
	@scripts/need-b64
	@PATH="$(CURDIR)/$(PACKAGES)/models/bin:$$PATH" $(TEST_ENV)/bin/python test/clients/run.py $(BIN) \
		kserve_client.py=$(PACKAGES)/kserve/bin/python mlserver_client.py=$(PACKAGES)/mlserver/bin/python \
		triton_client.py=$(TEST_ENV)/bin/python openai_client.py=$(TEST_ENV)/bin/python perf_client.py=$(PACKAGES)/perf/bin/python
	@PATH="$(CURDIR)/$(PACKAGES)/models/bin:$$PATH" $(TEST_ENV)/bin/python test/clients/services.py $(BIN) $(PACKAGES)/kserve/bin/python $(PACKAGES)/mlserver/bin/python $(PACKAGES)/triton/bin/python
	@$(TEST_ENV)/bin/python test/clients/engine_client.py $(BIN) $(PACKAGES)/engine/bin/python

test-frameworks: $(PACKAGES)/runtimes ## deploy real models of PyTorch and TensorFlow, which tests/heavy says how to install
	cd containers/python && ../../$(PACKAGES)/runtimes/bin/python -m pytest -q tests/heavy/test_torch.py tests/heavy/test_torchserve.py tests/heavy/test_tensorflow.py
	@$(MAKE) --no-print-directory wine wine-kafka WINE='--seconds 30'

test-api: build $(PACKAGES)/openapi ## ask the management API and the query port of a real Topsail what their OpenAPI documents allow, and what not
	scripts/schemathesis

test-rules: ## test the alarms with Prometheus's own promtool; minutes the first time
	cd deploy/prometheus && $(PROMTOOL) check rules topsail.rules.yml && $(PROMTOOL) test rules topsail.rules.test.yml

test-demo: ## clone the repository, run `make run` there, and ask both models
	scripts/test-demo

bench: build build/venv-bars/made $(PACKAGES)/mlserver $(PACKAGES)/kserve $(PACKAGES)/triton ## measure; the figures of docs/benchmarks.md. BEFORE=PROGRAM compares with an earlier bin/topsail
	PATH="$(CURDIR)/build/venv-bars/bin:$$PATH" go run ./bench/bars -only $(BENCH) $(if $(BEFORE),-before $(BEFORE))

selection: $(PACKAGES)/lab ## replay real models through every policy; the figures and plots of docs/selection
	$(PACKAGES)/lab/bin/python bench/policies/models.py build/lab/tables.json
	go run ./bench/policies -tables build/lab/tables.json -plots build/lab/plots.json -figures docs/selection/figures.md; \
		kept=$$?; $(PACKAGES)/lab/bin/python bench/policies/plots.py build/lab/plots.json docs/selection && exit $$kept

fuzz: ## fuzz every decoder for FUZZTIME each
	scripts/fuzz $(FUZZTIME)

lint: ## vet, format check and linters
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run: make fmt"; exit 1; }
	$(TOOLS) golangci-lint run --build-tags $(TAGS)

generate: $(TEST_ENV)/made ## write what is generated: records of the Python client, docs/cli.md, jobs of the roles, messages of model streams and of gRPC
	$(TEST_ENV)/bin/python containers/python/tools/records.py
	go run ./cmd/topsail docs > docs/cli.md
	go run ./nomad/generate -jobs nomad/jobs
	go -C internal/tools run ./protogen $(CURDIR) stream/models/proto/models.proto stream/models/proto/descriptor.proto gateway/grpcapi/proto/inference.proto gateway/grpcapi/proto/topsail.proto internal/imports/proto/triton.proto

pack: ## write the jobs as a pack for Nomad Pack into build/pack/topsail
	@rm -rf build/pack
	@go run ./nomad/generate -pack build/pack/topsail

fmt: ## format Go code
	gofmt -w $$(git ls-files '*.go')

fix: ## apply Go's own modernisations
	go fix ./...

clean: ## remove what was built, and leave what clones share
	rm -rf bin build

clean-cache: ## remove what clones share: servers, Python environments, packages of Node
	rm -rf "$${XDG_CACHE_HOME:-$$HOME/.cache}/topsail"

# What follows is made once for all clones, in ~/.cache/topsail, and here are links to it: scripts/cached. Packages of Python
# are in an environment for each use, so that what one needs is not in the others'.
REQUIRED_demo     := $(DEMO)/requirements.txt
REQUIRED_test     := containers/python/tests/requirements.txt
REQUIRED_clipper  := containers/python/tests/clipper/requirements.txt
REQUIRED_spark    := containers/python/tests/heavy/spark.txt $(REQUIRED_clipper) $(REQUIRED_test)
REQUIRED_runtimes := containers/python/tests/heavy/requirements.txt $(REQUIRED_clipper) $(REQUIRED_test)
REQUIRED_wine     := examples/wine/requirements.txt
REQUIRED_models   := test/clients/models.txt
REQUIRED_kserve   := test/clients/kserve.txt
REQUIRED_mlserver := test/clients/mlserver.txt
REQUIRED_perf     := test/clients/perf.txt
REQUIRED_engine   := test/clients/engine.txt
REQUIRED_bars     := $(REQUIRED_demo) bench/bars/requirements.txt
REQUIRED_triton   := bench/bars/triton.txt
REQUIRED_lab      := bench/policies/requirements.txt
REQUIRED_openapi  := test/openapi/requirements.txt

# Clipper's own package, its code unchanged. What it pins cannot be imported by Python 3.8 and later, so it is installed
# without that, beside current versions of what it imports.
CLIPPER          := clipper_admin==0.4.1
ALSO_clipper     := $(CLIPPER)
ALSO_spark       := $(CLIPPER)
ALSO_runtimes    := $(CLIPPER)

$(addprefix $(PACKAGES)/,demo test wine clipper spark runtimes models kserve mlserver perf engine bars triton lab openapi): $(PACKAGES)/%: FORCE
	@scripts/cached $@ '$(PYTHON) -VV' 'PYTHON=$(PYTHON) scripts/packages $(REQUIRED_$*) $(ALSO_$*)' scripts/packages $(REQUIRED_$*) $(REQUIRED_demo)

# Those with the SDK as it is in this clone.
$(DEMO_ENV)/made $(TEST_ENV)/made build/venv-clipper/made build/venv-bars/made: build/venv-%/made: $(PACKAGES)/% scripts/sdk $(shell git ls-files containers/python/src containers/python/pyproject.toml)
	@scripts/sdk $(@D) $<
	@touch $@

build/node: FORCE
	@scripts/cached $@ 'node --version' 'mkdir $$OUT && cp $(UI)/package.json $(UI)/package-lock.json $$OUT && npm ci --prefix $$OUT --ignore-scripts --no-audit --no-fund --silent' $(UI)/package-lock.json

# The servers, each built in a module of its own: minutes the first time.
PACKAGE_OF_consul    := github.com/hashicorp/consul
PACKAGE_OF_nomad     := -tags ui github.com/hashicorp/nomad
PACKAGE_OF_influxd   := github.com/influxdata/influxdb/cmd/influxd
PACKAGE_OF_versitygw := github.com/versity/versitygw/cmd/versitygw
MODULE_OF_influxd    := influxdb
go-server = scripts/cached $@ 'go version' 'go build -C $(1) -trimpath -ldflags="-s -w" -o $$OUT$(3) $(2)' $(1)/go.mod $(1)/go.sum $(shell find test/servers/standins -type f)

$(SERVERS)/consul $(SERVERS)/nomad $(SERVERS)/influxd $(SERVERS)/versitygw: FORCE
	@$(call go-server,test/servers/$(or $(MODULE_OF_$(@F)),$(@F)),$(PACKAGE_OF_$(@F)))

$(SERVERS)/plugins: FORCE
	@$(call go-server,test/servers/nomad,./gpus,/gpus) test/servers/nomad/gpus/main.go

$(SERVERS)/influxd2: FORCE
	@scripts/cached $@ 'go version' 'scripts/build-influxdb2 $$OUT' scripts/build-influxdb2 test/servers/influxdb2/go.mod test/servers/influxdb2/go.sum

# Kafka and a schema registry, as they are published.
MAVEN_GET := scripts/need-java && mvn --batch-mode --quiet -Dstyle.color=never --strict-checksums -DoutputDirectory=$$OUT

$(SERVERS)/kafka: FORCE
	@scripts/cached $@ true '$(MAVEN_GET) --file test/servers/kafka/pom.xml dependency:copy-dependencies' test/servers/kafka/pom.xml

$(SERVERS)/registry: FORCE
	@scripts/cached $@ true '$(MAVEN_GET) --file test/servers/registry/pom.xml dependency:copy; tar -xzf $$OUT/*.tar.gz -C $$OUT; rm $$OUT/*.tar.gz' test/servers/registry/pom.xml

FORCE:
