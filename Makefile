# Topsail. `make help` lists the targets.

BIN      := bin/topsail
VENV     := build/venv
PYTHON   ?= python3
DEMO     := examples/demo
UI       := web/ui
MODELS   := build/demo-models
DATA_DIR ?= build/demo-data
TOOLS    := go tool -modfile=internal/tools/go.mod
PROMTOOL := go tool -modfile=$(CURDIR)/internal/tools/promtool.mod promtool
SERVERS  := build/servers
LAB      := build/lab
PMML     := build/jvm/topsail-pmml.jar
MAVEN    := TZ=UTC mvn --batch-mode --quiet --no-transfer-progress --strict-checksums --file containers/jvm/pom.xml
FUZZTIME ?= 20s
BENCH    ?= all
OFFSET   ?= 0
OUTAGE   ?= 20s

# Compiled code is the same in any folder, so that a fresh clone finds it in Go's cache. The tags are the circles of test/arch.
export GOFLAGS ?= -trimpath
export TAGS    := servers,system,bars,faults,edge

.PHONY: help build ui pmml run servers cluster cluster-down test check quick bars test-race test-random test-servers test-system test-ui-full test-ui test-go test-python test-jvm test-image test-deployers test-runtimes test-frameworks test-api test-clients test-demo test-rules faults test-faults test-edge bench figures selection fuzz generate pack lint fmt fix clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

build: ui ## build bin/topsail, with the web UI where there is Node
	go build -o $(BIN) ./cmd/topsail

ui: ## build the web UI, which the program then carries
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory $(UI)/dist/index.html; \
	else echo "there is no npm: building without the web UI; it needs Node 20 or later"; fi

$(UI)/dist/index.html: $(UI)/node_modules/.package-lock.json $(shell git ls-files web/api/openapi.yaml web/ui/src web/ui/index.html web/ui/*.ts web/ui/*.js web/ui/*.mjs)
	@echo "building the web UI"
	@cd $(UI) && npm run --silent build -- --logLevel warn

$(UI)/node_modules/.package-lock.json: $(UI)/package-lock.json
	@cd $(UI) && npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

pmml: $(PMML) ## build bin/topsail-pmml.jar, which evaluates PMML models in Java
	@mkdir -p bin && cp $(PMML) bin/

$(PMML): scripts/need-java $(shell find containers/jvm/pom.xml containers/jvm/src/main -type f)
	@scripts/need-java
	@echo "building topsail-pmml.jar"
	@$(MAVEN) package -Dmaven.test.skip=true
	@touch $@

run: build $(VENV)/demo ## serve two demo models on this machine
	@$(VENV)/bin/python $(DEMO)/train.py $(MODELS)
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" DEMO_MODELS="$(CURDIR)/$(MODELS)" \
		$(BIN) local --config $(DEMO)/topsail.toml --data-dir $(DATA_DIR) $(RUN_FLAGS)

servers: $(addprefix $(SERVERS)/,consul nomad plugins/gpus influxd influxd2 versitygw kafka/made registry/made) ## build Consul, Nomad, InfluxDB, VersityGW, Kafka and a schema registry for tests and clusters, and find Redis
	@scripts/need-redis

cluster: build servers $(VENV)/demo ## run Consul, Nomad, Redis, InfluxDB and Topsail on them; OFFSET=10000 moves all ports
	@$(VENV)/bin/python $(DEMO)/train.py $(MODELS)
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" DEMO_MODELS="$(CURDIR)/$(MODELS)" go run ./test/devcluster up -offset $(OFFSET)

cluster-down: ## stop the cluster and leave nothing behind
	@go run ./test/devcluster down -offset $(OFFSET)

# The circles of tests: `make test` is the gate; CONTRIBUTING.md says when to run which of the others.
test: ## run the tests that every change must pass; nothing in them measures a clock
	@scripts/steps lint test-go test-python test-ui test-jvm test-demo

check: ## run everything, go on after a failure, and write a table into build/check
	@scripts/steps -k lint test-go test-python test-ui test-jvm test-demo test-race test-random test-servers test-system bars \
		faults test-edge test-api test-clients test-ui-full test-runtimes test-deployers test-rules test-image

quick: $(VENV)/test ## check what changed since the last commit on main, and test the Go packages it reaches
	@scripts/quick

test-go: build $(VENV)/test $(PMML)
	@scripts/need-redis
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" scripts/test-go

test-ui: build ## check the web UI, and walk through it with Chromium
	@scripts/need-chromium
	cd $(UI) && npm run --silent check && npm test --silent && npm run --silent e2e
	scripts/test-ui

test-ui-full: build ## drive all of the web UI with Chromium, and take pictures of it
	@scripts/need-chromium
	cd $(UI) && npm run --silent e2e-full
	scripts/test-ui full

test-random: build $(VENV)/test $(PMML) ## test properties with new random cases, ten times as many
	@scripts/need-redis
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" scripts/test-random

test-race: build $(VENV)/test $(PMML) ## test all Go packages of the gate under the race detector
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" RACE=all TIMEOUT=20m scripts/test-go

test-servers: build servers $(VENV)/test $(PMML) ## test adapters and jobs against their real servers, also killed, frozen and with TLS
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" scripts/test-circle servers -race

test-system: build servers $(VENV)/test $(VENV)-clipper/made $(PMML) ## test whole programs and clusters, with models in Python and Java and Clipper's own client
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" scripts/test-circle system

bars: build servers $(VENV)/test $(PMML) ## measure what has a bar: rates, ratios and percentiles; on an idle machine
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" scripts/test-circle bars
	cd containers/python && ../../$(VENV)/bin/python -m pytest -q -m bars
	cd $(UI) && npm run --silent e2e-speed

faults: servers ## break a real cluster under load, servers being away for OUTAGE
	@scripts/test-circle faults -v -args -outage $(OUTAGE)

test-faults: ## the same with servers away for a minute
	@$(MAKE) faults OUTAGE=60s

test-edge: ## attack a real Topsail as a client without a key could, beside a steady one
	@scripts/test-circle edge -v

test-python: $(VENV)/test ## check the Python package's form and types, and test it
	cd containers/python && ../../$(VENV)/bin/ruff check -q src tests tools && ../../$(VENV)/bin/ruff format -q --check src tests tools && ../../$(VENV)/bin/mypy
	cd containers/python && ../../$(VENV)/bin/python -m pytest -q -n 2

figures: build servers ## measure a cluster: from zero, steps, rollouts, changes, many versions
	go run ./bench/reports

test-image: ## build the image of deploy/image with buildah, as root, and serve a bundle in it
	@scripts/test-image

test-jvm: ## test the container in Java and the evaluator of PMML models
	@scripts/need-java
	$(MAVEN) test

test-deployers: $(VENV)-spark/made ## deploy real models of R and PySpark; PySpark is 450 MB
	@scripts/need-java
	@scripts/need-r
	cd containers/python && ../../$(VENV)-spark/bin/python -m pytest -q tests/heavy/test_r.py tests/heavy/test_*pyspark.py

test-runtimes: $(VENV)-runtimes/made ## deploy real models of ONNX, XGBoost and LightGBM, and pipelines with pandas, and with Clipper's deployer of ONNX
	cd containers/python && ../../$(VENV)-runtimes/bin/python -W ignore -m pytest -q tests/heavy/test_onnx.py tests/heavy/test_pandas.py tests/heavy/test_trees.py tests/heavy/test_clipper_onnx.py

test-clients: build $(VENV)/test $(VENV)-models/made $(VENV)-kserve/made $(VENV)-mlserver/made ## ask models of scikit-learn and ONNX and a chat as clients of KServe, MLServer, Triton and OpenAI do; they are 1.2 GB
	@PATH="$(CURDIR)/$(VENV)-models/bin:$$PATH" $(VENV)/bin/python test/clients/run.py $(BIN) \
		kserve_client.py=$(VENV)-kserve/bin/python mlserver_client.py=$(VENV)-mlserver/bin/python \
		triton_client.py=$(VENV)/bin/python openai_client.py=$(VENV)/bin/python

test-frameworks: $(VENV)-runtimes/made ## deploy real models of PyTorch and TensorFlow, which tests/heavy says how to install
	cd containers/python && ../../$(VENV)-runtimes/bin/python -m pytest -q tests/heavy/test_torch.py tests/heavy/test_tensorflow.py

test-api: build ## ask the management API and the query port of a real Topsail what their OpenAPI documents allow, and what not
	scripts/schemathesis

test-rules: ## test the alarms with Prometheus's own promtool; minutes the first time
	cd deploy/prometheus && $(PROMTOOL) check rules topsail.rules.yml && $(PROMTOOL) test rules topsail.rules.test.yml

test-demo: ## clone the repository, run `make run` there, and ask both models
	scripts/test-demo

bench: build $(VENV)/demo $(VENV)-mlserver/made ## measure; the figures of docs/benchmarks.md
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r bench/bars/requirements.txt
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" go run ./bench/bars -only $(BENCH)

selection: $(LAB)/python ## replay real models through every policy; the figures and plots of docs/selection
	$(LAB)/venv/bin/python bench/policies/models.py $(LAB)/tables.json
	go run ./bench/policies -tables $(LAB)/tables.json -plots $(LAB)/plots.json -figures docs/selection/figures.md; \
		kept=$$?; $(LAB)/venv/bin/python bench/policies/plots.py $(LAB)/plots.json docs/selection && exit $$kept

fuzz: ## fuzz every decoder for FUZZTIME each
	scripts/fuzz $(FUZZTIME)

lint: ## vet, format check and linters
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run: make fmt"; exit 1; }
	go vet ./...
	go vet -tags $(TAGS) ./...
	$(TOOLS) golangci-lint run --build-tags $(TAGS)

generate: $(VENV)/test ## write what is generated: records of the Python client, docs/cli.md, jobs of the roles, messages of model streams and of gRPC
	$(VENV)/bin/python containers/python/tools/records.py
	go run ./cmd/topsail docs > docs/cli.md
	go run ./nomad/generate -jobs nomad/jobs
	go -C internal/tools run ./protogen $(CURDIR) stream/models/proto/models.proto gateway/grpcapi/proto/inference.proto gateway/grpcapi/proto/topsail.proto

pack: ## write the jobs as a pack for Nomad Pack into build/pack/topsail
	@rm -rf build/pack
	@go run ./nomad/generate -pack build/pack/topsail

fmt: ## format Go code
	gofmt -w $$(git ls-files '*.go')

fix: ## apply Go's own modernisations
	go fix ./...

clean: ## remove what was built
	rm -rf bin build

# The Python environment: the SDK alone, then what the demo and the tests need.
$(VENV)/bin/python:
	@echo "making a Python environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Python 3.10 or later is needed; name one with make PYTHON=…"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "python3 -m venv failed; on Debian: apt-get install python3-venv"; exit 1; }

$(VENV)/sdk: $(VENV)/bin/python $(shell git ls-files containers/python/src containers/python/pyproject.toml)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps ./containers/python
	@touch $@

$(VENV)/demo: $(VENV)/sdk $(DEMO)/requirements.txt
	@echo "installing scikit-learn (once)"
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r $(DEMO)/requirements.txt
	@touch $@

$(VENV)/test: $(VENV)/demo containers/python/tests/requirements.txt
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r containers/python/tests/requirements.txt
	@touch $@

# Clipper's own package, for the tests that run it against Topsail.
$(VENV)-clipper/made: scripts/need-clipper containers/python/tests/clipper/requirements.txt $(VENV)/sdk
	@scripts/need-clipper $(VENV)-clipper
	$(VENV)-clipper/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps ./containers/python
	@touch $@

# Spark has an environment of its own, so that what else is tested does without.
$(VENV)-spark/made: containers/python/tests/heavy/spark.txt containers/python/tests/clipper/requirements.txt containers/python/tests/requirements.txt
	@echo "installing PySpark (once; about a minute)"
	@$(PYTHON) -m venv $(VENV)-spark
	$(VENV)-spark/bin/python -m pip install --quiet --disable-pip-version-check $(addprefix -r ,$^)
	$(VENV)-spark/bin/python -m pip install --quiet --disable-pip-version-check --no-deps clipper_admin==0.4.1
	@touch $@

# So have clients of other servers, and the models that they ask.
$(VENV)-kserve/made $(VENV)-mlserver/made $(VENV)-models/made: $(VENV)-%/made: test/clients/%.txt
	@echo "installing what test/clients/$*.txt names (once; a minute)"
	@$(PYTHON) -m venv $(VENV)-$*
	$(VENV)-$*/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# So have the runtimes of models: the other tests do without those too, or put fakes in their place.
$(VENV)-runtimes/made: containers/python/tests/heavy/requirements.txt containers/python/tests/clipper/requirements.txt containers/python/tests/requirements.txt
	@echo "installing ONNX Runtime, XGBoost and LightGBM (once; half a minute)"
	@$(PYTHON) -m venv $(VENV)-runtimes
	$(VENV)-runtimes/bin/python -m pip install --quiet --disable-pip-version-check $(addprefix -r ,$^)
	$(VENV)-runtimes/bin/python -m pip install --quiet --disable-pip-version-check --no-deps clipper_admin==0.4.1
	@touch $@

# The laboratory has an environment of its own, so that what it needs is not in the models'.
$(LAB)/python: bench/policies/requirements.txt
	@echo "installing scikit-learn and matplotlib (once)"
	@$(PYTHON) -m venv $(LAB)/venv
	$(LAB)/venv/bin/python -m pip install --quiet --disable-pip-version-check -r bench/policies/requirements.txt
	@touch $@

# The servers, each built in a module of its own. Minutes the first time.
SERVER_OF_consul  := github.com/hashicorp/consul
SERVER_OF_nomad   := -tags ui github.com/hashicorp/nomad
SERVER_OF_plugins/gpus := ./gpus
SERVER_OF_influxd := github.com/influxdata/influxdb/cmd/influxd
SERVER_OF_versitygw := github.com/versity/versitygw/cmd/versitygw

$(SERVERS)/consul: test/servers/consul/go.mod test/servers/consul/go.sum
$(SERVERS)/nomad: test/servers/nomad/go.mod test/servers/nomad/go.sum
$(SERVERS)/plugins/gpus: test/servers/nomad/go.mod test/servers/nomad/go.sum test/servers/nomad/gpus/main.go
$(SERVERS)/influxd: test/servers/influxdb/go.mod test/servers/influxdb/go.sum
$(SERVERS)/versitygw: test/servers/versitygw/go.mod test/servers/versitygw/go.sum
$(SERVERS)/influxd2: scripts/build-influxdb2 test/servers/influxdb2/go.mod test/servers/influxdb2/go.sum
	@echo "building influxd2 (once; some minutes)"
	@scripts/build-influxdb2 $@
	@touch $@

# Kafka's jars, as they are published.
$(SERVERS)/kafka/made: test/servers/kafka/pom.xml scripts/need-java
	@scripts/need-java
	@echo "fetching Kafka (once)"
	@rm -rf $(@D)
	@mvn --batch-mode --quiet -Dstyle.color=never --strict-checksums --file $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D)
	@touch $@

# And a schema registry.
$(SERVERS)/registry/made: test/servers/registry/pom.xml scripts/need-java
	@scripts/need-java
	@echo "fetching Apicurio Registry (once; 140 MB)"
	@rm -rf $(@D) && mkdir -p $(@D)
	@mvn --batch-mode --quiet -Dstyle.color=never --strict-checksums --file $< dependency:copy -DoutputDirectory=$(CURDIR)/$(@D)
	@tar -xzf $(@D)/*.tar.gz -C $(@D) && rm $(@D)/*.tar.gz
	@touch $@

$(SERVERS)/%:
	@echo "building $* (once; some minutes)"
	@cd $(<D) && go build -trimpath -ldflags='-s -w' -o $(CURDIR)/$@ $(SERVER_OF_$*)
	@touch $@
