package io.pgque.benchmarks;

import java.util.ArrayList;
import java.util.List;

import org.springframework.boot.Banner;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;

/**
 * A Spring Boot application with PgQue and default settings. What it receives holds the
 * time at which it was sent, by {@link System#nanoTime()}, which all processes of a Linux
 * machine share.
 */
@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
class Application {

	/**
	 * Start an application.
	 * @param components its listeners, if any
	 */
	static ConfigurableApplicationContext start(Database database, List<Class<?>> components, String... properties) {
		List<String> all = new ArrayList<>(List.of("spring.datasource.url=" + database.url(),
				"spring.application.name=benchmark", "logging.level.root=warn", "pgque.schema.mode=validate"));
		all.addAll(List.of(properties));
		List<Class<?>> sources = new ArrayList<>(components);
		sources.add(Application.class);
		return new SpringApplicationBuilder(sources.toArray(Class<?>[]::new)).web(WebApplicationType.NONE)
			.bannerMode(Banner.Mode.OFF)
			.properties(all.toArray(String[]::new))
			.run();
	}

}
