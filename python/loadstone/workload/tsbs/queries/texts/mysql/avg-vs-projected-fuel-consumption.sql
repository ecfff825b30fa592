SELECT {tag_as:t.fleet}, avg(r.fuel_consumption) AS avg_fuel_consumption,
		avg({number:t.nominal_fuel_consumption}) AS projected_fuel_consumption
		FROM tags t
		INNER JOIN readings r ON r.tags_id = t.id AND r.velocity > 1
		WHERE {tag:t.fleet} IS NOT NULL
		AND {tag:t.nominal_fuel_consumption} IS NOT NULL
		AND {tag:t.name} IS NOT NULL
		GROUP BY fleet
